/**
 * The app, once its database is open: the parts of the screen, and their shared state.
 */
import type { WarrenDatabase } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import {
  AppContext,
  type AppContextValue,
  type ListWithOpenCount,
  type OpenDialog,
  type Toast,
} from "./app-context.js";
import {
  useListGuard,
  useSearch,
  useSteps,
  useView,
  useViewChange,
  type SearchControls,
} from "./app-state.js";
import { settleDrafts } from "./data/drafts.js";
import { LISTS_QUERY, type PlanView } from "./data/views.js";
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
import { PHONE, useMedia, useNow, useRows } from "./ui/hooks.js";
import { Icon } from "./ui/icons.js";
import { Sheet } from "./ui/sheet.js";
import { ToastRegion } from "./ui/toast.js";
import { onUpdate } from "./update.js";

interface AppProps {
  readonly db: WarrenDatabase;
  readonly firstToast: Toast | undefined;
  /** Called to show another database. */
  readonly onOther: (db: WarrenDatabase, toast: Toast) => void;
  /** Called when this database was closed or erased. */
  readonly onReopen: (toast?: Toast) => void;
}

export function App({ db, firstToast, onOther, onReopen }: AppProps): JSX.Element {
  const now = useNow();
  const isPhone = useMedia(PHONE);
  const lists = useRows<ListWithOpenCount>(db, LISTS_QUERY)?.rows;
  const [place, go] = useView();
  const [openId, setOpenId] = useState<string>();
  const [dialogue, show] = useState<OpenDialog>();
  const [toast, setToast] = useState(firstToast);
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const steps = useSteps(db, setToast);
  const search = useSearch(db, isPhone);
  const view: PlanView =
    search.found === undefined ? place : { kind: "search", keys: search.found };
  useEffect(() => onUpdate(setToast), []);
  usePhraseRequest(db, dialogue, show);
  useSignedOutNotice(db, setToast, show);
  const [losses, recount] = useLosses(db);
  useSettledDrafts(db, setToast);
  useViewChange(place, () => {
    search.reset();
    setOpenId(undefined);
  });
  useFocusAfterClose(openId);
  useListGuard(lists, place, go);

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
  useShortcuts(app, search.open);
  if (lists === undefined) return <div class="opening" aria-busy="true" />;

  const sidebar = { search: search.text, onSearch: search.setText };
  return (
    <AppContext.Provider value={app}>
      <div class="app" data-testid="app">
        <button type="button" class="skip-link" onClick={focusItems}>
          Skip to items
        </button>
        {!isPhone && <Sidebar {...sidebar} />}
        <Main view={view} search={search} isPhone={isPhone} onMenu={() => setDrawerOpen(true)} />
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

/** Writes the drafts that closed tabs left. */
function useSettledDrafts(db: WarrenDatabase, toast: (toast: Toast) => void): void {
  useEffect(() => {
    settleDrafts(db).catch((error: unknown) =>
      toast({ text: errorText(error) ?? "A draft couldn’t be saved.", tone: "bad" }),
    );
  }, [db]);
}

/** Returns the focus to the list when the item panel closes. */
function useFocusAfterClose(openId: string | undefined): void {
  const wasOpen = useRef(openId);
  useEffect(() => {
    const isClosed = wasOpen.current !== undefined && openId === undefined;
    wasOpen.current = openId;
    // The arrow keys then continue at the same row; a sheet restores the focus on its own.
    if (isClosed && document.activeElement === document.body) focusItems();
  }, [openId]);
}

interface MainProps {
  readonly view: PlanView;
  readonly search: SearchControls;
  readonly isPhone: boolean;
  readonly onMenu: () => void;
}

/** Draws the view's items, with the parts above and below them. */
function Main({ view, search, isPhone, onMenu }: MainProps): JSX.Element {
  const viewKey = view.kind === "list" ? view.id : view.kind;
  return (
    <main class="main">
      {isPhone && search.isOpen ? (
        <div class="view-head">
          <SearchField value={search.text} onInput={search.setText} onClose={search.close} />
        </div>
      ) : (
        <ViewHeader
          view={view}
          onMenu={isPhone ? onMenu : undefined}
          onSearch={isPhone ? search.open : undefined}
        />
      )}
      {view.kind !== "search" && <QuickAdd />}
      <ListView key={viewKey} view={view} />
      {isPhone && <PhoneFooter />}
    </main>
  );
}

function PhoneFooter(): JSX.Element {
  return (
    <div class="phone-foot">
      <SyncPill />
      <button type="button" class="fab" aria-label="New item" onClick={focusQuickAdd}>
        <Icon name="plus" size={24} />
      </button>
    </div>
  );
}
