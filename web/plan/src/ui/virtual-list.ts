/**
 * Which rows of a long list are on the screen. All rows have the same height, so their places are
 * known without measuring, and only those near the window exist.
 */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

export interface VisibleRange {
  readonly first: number;
  /** After the last one. */
  readonly end: number;
}

/** Rows that exist above and below the window, so that scrolling shows no gaps. */
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

/** Rows are read in blocks of this many, so that scrolling a little asks for nothing new. */
const BLOCK = 64;

/** The blocks that hold these rows. */
export function blocksOf(visible: VisibleRange): VisibleRange {
  return {
    first: Math.floor(visible.first / BLOCK) * BLOCK,
    end: Math.ceil(visible.end / BLOCK) * BLOCK,
  };
}

/** The rows that are on the screen, and a few around them: told anew while the list scrolls. */
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
