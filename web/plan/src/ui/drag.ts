/**
 * Dragging a row with pointer events: by its grip with a finger, anywhere on it with a mouse.
 *
 * - The row is dropped between two rows of its list, or on an element with `data-drop-list`.
 * - A drag begins after a few pixels, so that clicks stay clicks. Escape ends it without a change.
 * - Near the edges, the list scrolls automatically.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { useLatest } from "./hooks.js";

export interface DragState {
  readonly index: number;
  readonly id: string;
  readonly title: string;
  readonly x: number;
  readonly y: number;
  /**
   * The row before which the item would be dropped; `undefined` if rows have no order of their
   * own.
   */
  readonly target: number | undefined;
  /** The list on which the item would be dropped. */
  readonly listId: string | undefined;
}

interface DragOptions {
  readonly scroller: { readonly current: HTMLElement | null };
  readonly rowHeight: number;
  /** The number of rows, from the first, that can be reordered; 0 if none. */
  readonly sortable: number;
  readonly onDrop: (drag: DragState) => void;
}

/** The row on which a drag begins. */
export type DragSource = Pick<DragState, "index" | "id" | "title">;

export interface DragControls {
  readonly drag: DragState | undefined;
  readonly begin: (event: PointerEvent, row: DragSource) => void;
}

const BEGIN_PX = 5;
const EDGE_PX = 56;

/** Returns the current drag, and a function that begins one when a pointer goes down on a row. */
export function useDrag(options: DragOptions): DragControls {
  const [drag, setDrag] = useState<DragState>();
  const latest = useLatest(options);
  const cancel = useRef<() => void>(() => undefined);
  useEffect(() => () => cancel.current(), []);
  const begin = (down: PointerEvent, row: DragSource): void => {
    if (down.button === 0) cancel.current = startDrag(down, row, latest, setDrag);
  };
  return { drag, begin };
}

/**
 * Follows the pointer until it is released. Returns a function that ends the drag without a
 * change.
 */
function startDrag(
  down: PointerEvent,
  row: DragSource,
  options: { readonly current: DragOptions },
  onChange: (drag: DragState | undefined) => void,
): () => void {
  let current: DragState | undefined;
  let frame = 0;
  let last: PointerEvent = down;
  const update = (): void => {
    const { scroller, rowHeight, sortable } = options.current;
    current = { ...row, ...targetAt(last, scroller.current, rowHeight, sortable) };
    onChange(current);
  };
  const scroll = (): void => {
    const element = options.current.scroller.current;
    const isOverRows = current !== undefined && current.listId === undefined;
    if (isOverRows && element !== null && scrollAtEdge(element, last.clientY)) update();
    frame = requestAnimationFrame(scroll);
  };
  const onMove = (event: PointerEvent): void => {
    if (event.pointerId !== down.pointerId) return;
    last = event;
    const far = Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY);
    if (current === undefined && far < BEGIN_PX) return;
    if (current === undefined) {
      document.documentElement.classList.add("dragging");
      frame = requestAnimationFrame(scroll);
    }
    update();
  };
  const end = (): void => {
    cancelAnimationFrame(frame);
    document.documentElement.classList.remove("dragging");
    removeEventListener("pointermove", onMove);
    removeEventListener("pointerup", onUp);
    removeEventListener("pointercancel", end);
    removeEventListener("keydown", onKey, true);
    onChange(undefined);
  };
  const onUp = (event: PointerEvent): void => {
    if (event.pointerId !== down.pointerId) return;
    const dropped = current;
    end();
    if (dropped === undefined) return;
    // The click that follows belongs to the drag.
    addEventListener("click", stopClick, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", stopClick, true), 0);
    options.current.onDrop(dropped);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || current === undefined) return;
    event.stopPropagation();
    end();
  };
  addEventListener("pointermove", onMove);
  addEventListener("pointerup", onUp);
  addEventListener("pointercancel", end);
  addEventListener("keydown", onKey, true);
  return end;
}

/** Scrolls while the pointer is near an edge; returns whether the rows moved. */
function scrollAtEdge(element: HTMLElement, clientY: number): boolean {
  const box = element.getBoundingClientRect();
  const over = Math.max(0, clientY - (box.bottom - EDGE_PX));
  const under = Math.max(0, box.top + EDGE_PX - clientY);
  const before = element.scrollTop;
  element.scrollTop += (Math.min(over, EDGE_PX) - Math.min(under, EDGE_PX)) / 4;
  return element.scrollTop !== before;
}

function stopClick(event: Event): void {
  event.stopPropagation();
  event.preventDefault();
}

function targetAt(
  event: PointerEvent,
  scroller: HTMLElement | null,
  rowHeight: number,
  sortable: number,
): Pick<DragState, "x" | "y" | "target" | "listId"> {
  const place = { x: event.clientX, y: event.clientY };
  const under = document.elementFromPoint(event.clientX, event.clientY);
  const listId = under?.closest<HTMLElement>("[data-drop-list]")?.dataset["dropList"];
  if (listId !== undefined) return { ...place, listId, target: undefined };
  if (scroller === null || sortable === 0) return { ...place, listId, target: undefined };
  const box = scroller.getBoundingClientRect();
  if (event.clientX < box.left) return { ...place, listId, target: undefined };
  const y = event.clientY - box.top + scroller.scrollTop;
  const target = Math.max(0, Math.min(sortable, Math.round(y / rowHeight)));
  return { ...place, listId, target };
}
