/**
 * The keyboard shortcuts that work everywhere. Those of a list are in `items/list-shortcuts.ts`.
 */
import { useEffect } from "preact/hooks";
import type { AppContextValue } from "./app-context.js";
import { hasDialog, isTyping } from "./items/list-shortcuts.js";
import { useLatest } from "./ui/hooks.js";
import { requestPrint } from "./ui/printing.js";

const IS_MAC = /^(Mac|iP)/.test(navigator.platform);

/** The shortcuts that the dialog lists. Letters are commands only while no item is open. */
export const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["n", "New item"],
  ["/", "Search"],
  ["↑ ↓", "Move through the list"],
  ["Space or x", "Check off"],
  ["Enter", "Open and edit the title"],
  ["Esc", "Close the item"],
  ["Alt ↑ ↓", "Move the item up or down"],
  ["m", "Move to another list"],
  [IS_MAC ? "⌘ ⌫" : "Delete", "Delete"],
  [IS_MAC ? "⌘ Z" : "Ctrl Z", "Undo"],
  [IS_MAC ? "⌘ Shift Z" : "Ctrl Shift Z", "Redo"],
  [IS_MAC ? "⌘ P" : "Ctrl P", "Print the list"],
  ["g then t u a", "Go to Today, Upcoming or All"],
  ["?", "Show these shortcuts"],
];

/** The time limit for the second key of `g t`. */
const SEQUENCE_MS = 1500;

/** Runs the commands of the keys, wherever the focus is. */
export function useShortcuts(app: AppContextValue, openSearch: () => void): void {
  const latest = useLatest({ app, openSearch });
  useEffect(() => {
    let goAtMs = 0;
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || isTyping(event) || hasDialog()) return;
      const isGoing = event.timeStamp - goAtMs < SEQUENCE_MS;
      goAtMs = event.key === "g" ? event.timeStamp : 0;
      if (run(event, latest.current.app, latest.current.openSearch, isGoing))
        event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

function run(
  event: KeyboardEvent,
  app: AppContextValue,
  openSearch: () => void,
  isGoing: boolean,
): boolean {
  if (event.ctrlKey || event.metaKey) return runWithControl(event, app);
  if (event.altKey) return false;
  // Keys typed while an item is open, before its title has the cursor, are meant for the title.
  if (app.openId !== undefined && event.key !== "Escape") return false;
  switch (event.key) {
    case "n":
      focusQuickAdd();
      return true;
    case "/":
      openSearch();
      return true;
    case "?":
      app.openDialog({ kind: "keys" });
      return true;
    case "Escape":
      app.open(undefined);
      return true;
    case "t":
      if (isGoing) app.navigate({ kind: "today" });
      return isGoing;
    case "u":
      if (isGoing) app.navigate({ kind: "upcoming" });
      return isGoing;
    case "a":
      if (isGoing) app.navigate({ kind: "all" });
      return isGoing;
    default:
      return false;
  }
}

function runWithControl(event: KeyboardEvent, app: AppContextValue): boolean {
  const key = event.key.toLowerCase();
  if (key === "p") {
    requestPrint();
    return true;
  }
  if (key === "y" || (key === "z" && event.shiftKey)) {
    app.redoLast();
    return true;
  }
  if (key !== "z") return false;
  app.undoLast();
  return true;
}

export function focusQuickAdd(): void {
  document.getElementById("quick-add")?.focus();
}

/** Puts the cursor at the end of the open item's title. */
export function focusTitle(): void {
  const title = document.querySelector<HTMLTextAreaElement>("#panel-title");
  title?.focus();
  title?.setSelectionRange(title.value.length, title.value.length);
}

/** Focuses the item at the list's cursor, or the list if there is none. */
export function focusItems(): void {
  const row = document.querySelector<HTMLElement>('.row-main[tabindex="0"]');
  (row ?? document.querySelector<HTMLElement>(".scroller"))?.focus();
}
