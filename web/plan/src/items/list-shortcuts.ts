/**
 * The keys of a list: arrows move, space or x checks off, Enter opens, Delete deletes, Alt with an
 * arrow moves the item itself, m moves it to another list.
 *
 * While an item is open, keys are meant for it and change nothing in the list. The focus moves
 * with the cursor, and returns to it after an item is gone.
 */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useApp, type AppContextValue } from "../app-context.js";
import { checkItem, removeItem, reorderItem } from "../data/items.js";
import type { TodoItem } from "../data/schema.js";
import type { PlanView } from "../data/views.js";
import { useLatest } from "../ui/hooks.js";
import { rowCount, type ListCursor, type VisibleRowCounts } from "./list-rows.js";

interface ListShortcutsOptions {
  readonly scroller: { readonly current: HTMLElement | null };
  readonly rowHeight: number;
  readonly extent: VisibleRowCounts;
  readonly items: ReadonlyMap<number, TodoItem>;
  readonly cursor: ListCursor;
  readonly setCursor: (cursor: ListCursor) => void;
  readonly view: PlanView;
}

/** The row that gets the focus as soon as it is drawn. */
interface FocusTarget {
  readonly index: number;
  /** The item that is leaving this row, which must not get the focus. */
  readonly not?: string;
  /** The item that is moving to this row, which alone may get the focus. */
  readonly only?: string;
}

/** Handles the keys of the list, and keeps the focus with the cursor. */
export function useListKeys(options: ListShortcutsOptions): void {
  const app = useApp();
  const latest = useLatest({ ...options, app });
  const wanted = useRef<FocusTarget | undefined>(undefined);

  // A layout effect, because a passive effect pending from earlier would take the old cursor's
  // row.
  useLayoutEffect(() => {
    const { scroller } = latest.current;
    const active = document.activeElement;
    const isElsewhere = active !== document.body && !(scroller.current?.contains(active) ?? false);
    if (isElsewhere) wanted.current = undefined;
    if (wanted.current === undefined) return;
    const { index, not, only } = wanted.current;
    const button = scroller.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
    if (button === null || button === undefined) return;
    const id = button.closest("li")?.dataset["id"];
    if (id === not || id !== (only ?? id)) return;
    wanted.current = undefined;
    button.focus({ preventScroll: true });
  });

  const moveTo = (index: number): void => {
    const { extent, items, setCursor, scroller, rowHeight } = latest.current;
    const total = rowCount(extent);
    if (total === 0) return;
    const target = Math.max(0, Math.min(total - 1, index));
    wanted.current = { index: target };
    setCursor({ index: target, id: items.get(target)?.id });
    reveal(scroller.current, target, rowHeight);
  };

  const run = (event: KeyboardEvent): boolean => {
    const { cursor, items, extent } = latest.current;
    const step = steps(event.key, latest.current);
    if (step !== undefined && !event.altKey) {
      let index = cursor.index + step;
      // The row that shows and hides finished items is reached by Tab.
      if (index === extent.open && extent.done > 0) index += Math.sign(step);
      // At the end the cursor stays, and has the focus.
      moveTo(index < rowCount(extent) ? index : cursor.index);
      return true;
    }
    const item = items.get(cursor.index);
    if (item === undefined) return false;
    const stay = (): void => {
      wanted.current = { index: cursor.index, not: item.id };
      latest.current.setCursor({ index: cursor.index, id: undefined });
    };
    const follow = (index: number): void => {
      wanted.current = { index, only: item.id };
      latest.current.setCursor({ index: cursor.index, id: item.id });
    };
    return runOnItem(event, item, latest.current, stay, follow);
  };

  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || isTyping(event) || hasDialog()) return;
      if (event.target !== document.body && !isInList(event, latest.current.scroller.current))
        return;
      if (run(event)) event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

type ListShortcutsContext = ListShortcutsOptions & { readonly app: AppContextValue };

function steps(
  key: string,
  { scroller, rowHeight, extent }: ListShortcutsContext,
): number | undefined {
  const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 1);
  switch (key) {
    case "ArrowDown":
    case "j":
      return 1;
    case "ArrowUp":
    case "k":
      return -1;
    case "PageDown":
      return page;
    case "PageUp":
      return -page;
    case "Home":
      return -rowCount(extent);
    default:
      return undefined;
  }
}

/** Runs the command of a key on the item; returns whether there is one. */
function runOnItem(
  event: KeyboardEvent,
  item: TodoItem,
  { app, cursor, items, extent, view }: ListShortcutsContext,
  stay: () => void,
  follow: (index: number) => void,
): boolean {
  // On a Mac the key is Command with Backspace: Backspace alone is too near to the letters.
  const isMacDelete = event.metaKey && event.key === "Backspace";
  if (event.ctrlKey || (event.metaKey && !isMacDelete)) return false;
  if (app.openId !== undefined && event.key !== "Enter") return false;
  switch (event.key) {
    case " ":
    case "x":
      // On the check box itself, the browser handles space.
      if (event.target instanceof HTMLInputElement && event.key === " ") return false;
      stay();
      void app.perform(checkItem(item, item.done_ms === null ? Date.now() : null));
      return true;
    case "Delete":
    case "Backspace":
      if (event.key === "Backspace" && !isMacDelete) return false;
      stay();
      void app.perform(Promise.resolve(removeItem(item)));
      return true;
    case "Enter":
    case "e":
      app.open(item.id);
      return true;
    case "m":
      app.openDialog({ kind: "move", item });
      return true;
    case "ArrowUp":
    case "ArrowDown": {
      if (view.kind !== "list" || item.done_ms !== null) return true;
      const isUp = event.key === "ArrowUp";
      const after = items.get(cursor.index + (isUp ? -2 : 1));
      if (isUp ? cursor.index === 0 : cursor.index >= extent.open - 1) return true;
      follow(cursor.index + (isUp ? -1 : 1));
      void app.perform(
        reorderItem(app.db, item, isUp && cursor.index === 1 ? undefined : after?.id),
        "quiet",
      );
      return true;
    }
    default:
      return false;
  }
}

function reveal(scroller: HTMLElement | null, index: number, rowHeight: number): void {
  if (scroller === null) return;
  const top = index * rowHeight;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  const bottom = top + rowHeight - scroller.clientHeight;
  if (bottom > scroller.scrollTop) scroller.scrollTop = bottom;
}

function isInList(event: Event, scroller: HTMLElement | null): boolean {
  return event.target instanceof Node && scroller?.contains(event.target) === true;
}

/** Whether a key belongs to a field into which the user types. */
export function isTyping(event: Event): boolean {
  const target = event.target;
  if (target instanceof HTMLElement && target.isContentEditable) return true;
  if (target instanceof HTMLInputElement)
    return target.type !== "checkbox" && target.type !== "radio";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export function hasDialog(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
