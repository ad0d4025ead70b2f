/**
 * The app, once its database is open: where the user is, the steps with their undo, and the parts
 * of the screen.
 */
import type { WarrenDatabase } from "@warren/client";
import type { JSX } from "preact";
import { flushSync } from "preact/compat";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  AppContext,
  type AppContextValue,
  type ListWithOpenCount,
  type OpenDialog,
  type Toast,
} from "./app-context.js";
import { settleDrafts } from "./data/drafts.js";
import { runStatements } from "./data/run-statements.js";
import { createSearchIndex, SEARCHABLE_QUERY, type SearchableItem } from "./data/search.js";
import { createUndo, type UndoableStep } from "./data/undo.js";
import { isSameView, LISTS_QUERY, viewFromHash, viewToHash, type PlanView } from "./data/views.js";
import { Dialogs } from "./dialogs/dialogs.js";
import { ViewHeader } from "./items/header.js";
import { ListView } from "./items/list-view.js";
import { ItemPanel } from "./items/panel.js";
import { QuickAdd } from "./items/quick-add.js";
import { SearchField } from "./items/search-field.js";
import { Sidebar } from "./items/sidebar.js";
import { focusItems, focusQuickAdd, focusTitle, useShortcuts } from "./shortcuts.js";
import { useLosses } from "./sync/losses.js";
import { usePhraseRequest } from "./sync/phrase-request.js";
import { SyncPill } from "./sync/pill.js";
import { errorText } from "./sync/error-texts.js";
import { useSignedOutNotice } from "./sync/signed-out.js";
import { PHONE, useLatest, useMedia, useNow, useRows } from "./ui/hooks.js";
import { Icon } from "./ui/icons.js";
import { navigate, useLayer } from "./ui/layers.js";
import { Sheet } from "./ui/sheet.js";
import { ToastRegion } from "./ui/toast.js";
import { onUpdate } from "./update.js";

const HOME: PlanView = { kind: "today" };

/** The view in the page's address. */
function useView(): readonly [PlanView, (view: PlanView) => void] {
  const [view, setView] = useState<PlanView>(() => viewFromHash(location.hash) ?? HOME);
  useEffect(() => {
    const onHash = (): void => setView(viewFromHash(location.hash) ?? HOME);
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  return [view, (next) => navigate(viewToHash(next))];
}

/** What a search finds; `undefined` where nothing is searched for, or nothing is known yet. */
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

function useSteps(db: WarrenDatabase, toast: (toast: Toast) => void): UndoActions {
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

interface AppProps {
  readonly db: WarrenDatabase;
  readonly firstToast: Toast | undefined;
  /** Another database is to be shown. */
  readonly onOther: (db: WarrenDatabase, toast: Toast) => void;
  /** This one is closed, or erased. */
  readonly onReopen: (toast?: Toast) => void;
}

export function App({ db, firstToast, onOther, onReopen }: AppProps): JSX.Element {
  const now = useNow();
  const isPhone = useMedia(PHONE);
  const lists = useRows<ListWithOpenCount>(db, LISTS_QUERY)?.rows;
  const [place, go] = useView();
  const [search, setSearch] = useState("");
  const [isSearching, setSearching] = useState(false);
  const [openId, setOpenId] = useState<string>();
  const [dialogue, show] = useState<OpenDialog>();
  const [toast, setToast] = useState(firstToast);
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const steps = useSteps(db, setToast);
  const found = useFound(db, search);
  const view: PlanView = found === undefined ? place : { kind: "search", keys: found };
  useEffect(() => onUpdate(setToast), []);
  usePhraseRequest(db, dialogue, show);
  useSignedOutNotice(db, setToast, show);
  const [losses, recount] = useLosses(db);
  useEffect(() => {
    settleDrafts(db).catch((error: unknown) =>
      setToast({ text: errorText(error) ?? "A draft could not be saved.", tone: "bad" }),
    );
  }, [db]);
  useLayer(() => {
    setSearch("");
    setSearching(false);
  }, isPhone && isSearching);

  const wasAt = useRef(place);
  useEffect(() => {
    if (isSameView(wasAt.current, place)) return;
    wasAt.current = place;
    setSearch("");
    setSearching(false);
    setOpenId(undefined);
  }, [place]);
  const wasOpen = useRef(openId);
  useEffect(() => {
    const isClosed = wasOpen.current !== undefined && openId === undefined;
    wasOpen.current = openId;
    // So that the arrows go on where they were; a sheet gives the focus back by itself.
    if (isClosed && document.activeElement === document.body) focusItems();
  }, [openId]);
  const missing =
    lists !== undefined && place.kind === "list" && !lists.some((list) => list.id === place.id);
  const wasThere = useRef<PlanView>(place);
  useEffect(() => {
    // A list that was there and is gone: deleted here or elsewhere.
    if (!missing) wasThere.current = place;
    else if (isSameView(wasThere.current, place)) go({ kind: "all" });
  }, [missing, place]);

  const app: AppContextValue = {
    ...steps,
    db,
    now,
    lists: lists ?? [],
    view,
    navigate: go,
    openId,
    open: (id) => {
      if (id !== undefined && id === openId) focusTitle();
      setOpenId(id);
    },
    openDialog: (next) => {
      setDrawerOpen(false);
      show(next);
    },
    toast: setToast,
    losses,
    recount,
    use: onOther,
    reopen: onReopen,
  };
  const latest = useLatest(isPhone);
  const openSearch = useCallback(() => {
    // At once, so that no letter that follows is taken for a command.
    if (latest.current) flushSync(() => setSearching(true));
    document.getElementById("search")?.focus();
  }, []);
  useShortcuts(app, openSearch);
  if (lists === undefined) return <div class="opening" aria-busy="true" />;

  const viewKey = view.kind === "list" ? view.id : view.kind;
  const sidebar = { search, onSearch: setSearch };
  return (
    <AppContext.Provider value={app}>
      <div class="app" data-testid="app">
        <button type="button" class="skip-link" onClick={focusItems}>
          Skip to the items
        </button>
        {!isPhone && <Sidebar {...sidebar} />}
        <main class="main">
          {isPhone && isSearching ? (
            <div class="view-head">
              <SearchField value={search} onInput={setSearch} onClose={() => setSearching(false)} />
            </div>
          ) : (
            <ViewHeader
              view={view}
              onMenu={isPhone ? () => setDrawerOpen(true) : undefined}
              onSearch={isPhone ? openSearch : undefined}
            />
          )}
          {view.kind !== "search" && <QuickAdd />}
          <ListView key={viewKey} view={view} />
          {isPhone && (
            <div class="phone-foot">
              <SyncPill />
              <button type="button" class="fab" aria-label="New item" onClick={focusQuickAdd}>
                <Icon name="plus" size={24} />
              </button>
            </div>
          )}
        </main>
        {openId !== undefined && <ItemPanel id={openId} />}
        {isPhone && isDrawerOpen && (
          <Sheet class="drawer" label="Views and lists" onClose={() => setDrawerOpen(false)}>
            <Sidebar {...sidebar} isDrawer onGone={() => setDrawerOpen(false)} />
          </Sheet>
        )}
        <Dialogs dialogue={dialogue} />
        <ToastRegion toast={toast} onClose={() => setToast(undefined)} />
      </div>
    </AppContext.Provider>
  );
}
