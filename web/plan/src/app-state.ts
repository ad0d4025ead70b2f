/**
 * The app's state while it is open, one hook for each part: the view in the page's address, the
 * search, the steps with their undo.
 */
import type { WarrenDatabase } from "@warren/client";
import { flushSync } from "preact/compat";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AppContextValue, ListWithOpenCount, Toast } from "./app-context.js";
import { runStatements } from "./data/run-statements.js";
import { createSearchIndex, SEARCHABLE_QUERY, type SearchableItem } from "./data/search.js";
import { createUndo, type UndoableStep } from "./data/undo.js";
import { isSameView, viewFromHash, viewToHash, type PlanView } from "./data/views.js";
import { errorText } from "./sync/error-texts.js";
import { useLatest, useRows } from "./ui/hooks.js";
import { navigate, useLayer } from "./ui/layers.js";

const HOME: PlanView = { kind: "today" };

/** Returns the view in the page's address, and a function that goes to another view. */
export function useView(): readonly [PlanView, (view: PlanView) => void] {
  const [view, setView] = useState<PlanView>(() => viewFromHash(location.hash) ?? HOME);
  useEffect(() => {
    const onHash = (): void => setView(viewFromHash(location.hash) ?? HOME);
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  return [view, (next) => navigate(viewToHash(next))];
}

/** Calls `onChange` when the user has gone to another view. */
export function useViewChange(view: PlanView, onChange: () => void): void {
  const last = useRef(view);
  useEffect(() => {
    if (isSameView(last.current, view)) return;
    last.current = view;
    onChange();
  }, [view]);
}

/** Goes to all items when the list on the screen no longer exists. */
export function useListGuard(
  lists: readonly ListWithOpenCount[] | undefined,
  view: PlanView,
  go: (view: PlanView) => void,
): void {
  const isMissing =
    lists !== undefined && view.kind === "list" && !lists.some((list) => list.id === view.id);
  const wasThere = useRef<PlanView>(view);
  useEffect(() => {
    // The list existed and is gone: it was deleted here or on another device.
    if (!isMissing) wasThere.current = view;
    else if (isSameView(wasThere.current, view)) go({ kind: "all" });
  }, [isMissing, view]);
}

export interface SearchControls {
  readonly text: string;
  readonly setText: (text: string) => void;
  /** The keys of the items that were found; `undefined` while no search is active. */
  readonly found: readonly number[] | undefined;
  /** Whether the field replaces the view's title, as on a phone. */
  readonly isOpen: boolean;
  /** Shows the field and puts the cursor into it. The function never changes. */
  readonly open: () => void;
  readonly close: () => void;
  /** Closes the field and clears its text. */
  readonly reset: () => void;
}

/** Returns the search: its text, and its results. On a phone, going back ends it. */
export function useSearch(db: WarrenDatabase, isPhone: boolean): SearchControls {
  const [text, setText] = useState("");
  const [isOpen, setOpen] = useState(false);
  const found = useFound(db, text);
  const reset = (): void => {
    setText("");
    setOpen(false);
  };
  useLayer(reset, isPhone && isOpen);
  const latest = useLatest(isPhone);
  const open = useCallback(() => {
    // Synchronously, so that no following letter is taken for a command.
    if (latest.current) flushSync(() => setOpen(true));
    document.getElementById("search")?.focus();
  }, []);
  return { text, setText, found, isOpen, open, close: () => setOpen(false), reset };
}

/**
 * Returns the keys of the found items; `undefined` if no search is active or its rows are not
 * loaded.
 */
function useFound(db: WarrenDatabase, search: string): readonly number[] | undefined {
  const [index] = useState(createSearchIndex);
  const isSearching = search.trim() !== "";
  const rows = useRows<SearchableItem>(db, isSearching ? SEARCHABLE_QUERY : undefined)?.rows;
  return useMemo(
    () => (isSearching && rows !== undefined ? index.find(rows, search) : undefined),
    [rows, search],
  );
}

interface UndoActions {
  readonly perform: AppContextValue["perform"];
  readonly undoLast: () => void;
  readonly redoLast: () => void;
  readonly undo: AppContextValue["undo"];
}

/** Returns functions that perform, undo and redo steps, and show a toast about each. */
export function useSteps(db: WarrenDatabase, toast: (toast: Toast) => void): UndoActions {
  return useMemo(() => {
    const undo = createUndo((statements) => runStatements(db, statements));
    const fail = (error: unknown): void =>
      toast({ text: errorText(error) ?? "Something went wrong.", tone: "bad" });
    const undoLast = (): void => {
      undo.undo().then((step) => {
        if (step === undefined) return toast({ text: "Nothing to undo" });
        return toast({ text: `Undone: ${step.label}`, action: { label: "Redo", run: redoLast } });
      }, fail);
    };
    const redoLast = (): void => {
      undo.redo().then((step) => {
        if (step === undefined) return toast({ text: "Nothing to redo" });
        return toast({ text: `Redone: ${step.label}`, action: { label: "Undo", run: undoLast } });
      }, fail);
    };
    const perform = async (
      wanted: UndoableStep | Promise<UndoableStep | undefined>,
      quiet?: "quiet",
    ): Promise<void> => {
      try {
        const step = await wanted;
        if (step === undefined) return;
        await undo.perform(step);
        if (quiet === "quiet") return;
        toast({ text: step.label, action: { label: "Undo", run: undoLast } });
      } catch (error) {
        fail(error);
      }
    };
    return { perform, undoLast, redoLast, undo };
  }, [db]);
}
