/**
 * Computes which rows of a long list are on the screen. All rows have the same height, so their
 * positions are known without measuring, and only rows near the window are drawn.
 */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

export interface VisibleRange {
  readonly first: number;
  /** The index after the last row. */
  readonly end: number;
}

/** The number of rows drawn above and below the window, so that scrolling shows no gaps. */
const OVERSCAN = 8;

export function visibleRows(
  scrollTop: number,
  height: number,
  rowHeight: number,
  count: number,
): VisibleRange {
  const first = Math.max(0, Math.min(count, Math.floor(scrollTop / rowHeight)) - OVERSCAN);
  const end = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + OVERSCAN);
  return { first, end: Math.max(first, end) };
}

/** The number of rows that are read at a time, so that scrolling a little reads nothing new. */
const BLOCK = 64;

/** Returns the range of whole blocks that contains these rows. */
export function blocksOf(visible: VisibleRange): VisibleRange {
  return {
    first: Math.floor(visible.first / BLOCK) * BLOCK,
    end: Math.ceil(visible.end / BLOCK) * BLOCK,
  };
}

/** Returns the rows on the screen and a few around them, updated while the list scrolls. */
export function useVisible(
  scroller: { readonly current: HTMLElement | null },
  rowHeight: number,
  count: number,
): VisibleRange {
  const [visible, setVisible] = useState<VisibleRange>({ first: 0, end: Math.min(count, 40) });
  const update = (): void => {
    const element = scroller.current;
    if (element === null) return;
    const next = visibleRows(element.scrollTop, element.clientHeight, rowHeight, count);
    setVisible((now) => (now.first === next.first && now.end === next.end ? now : next));
  };
  useLayoutEffect(update, [rowHeight, count]);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return undefined;
    element.addEventListener("scroll", update, { passive: true });
    const resize = new ResizeObserver(update);
    resize.observe(element);
    return () => {
      element.removeEventListener("scroll", update);
      resize.disconnect();
    };
  }, [rowHeight, count]);
  return visible;
}
