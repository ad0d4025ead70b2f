/**
 * The app's context for all components: the database, the steps with their undo, the present view,
 * and the open dialog.
 */
import type { WarrenDatabase } from "@warren/client";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { TodoItem, TodoList } from "./data/schema.js";
import type { UndoableStep, UndoStack } from "./data/undo.js";
import type { CurrentDay, PlanView } from "./data/views.js";
import type { LossCounts } from "./sync/losses.js";

/** The dialogs; at most one is open. */
export type OpenDialog =
  | { readonly kind: "account"; readonly mode: "signUp" | "signIn" }
  | { readonly kind: "conflicts" | "deleted" | "enterPhrase" | "import" | "keys" | "newAccount" }
  | { readonly kind: "passcode"; readonly change: "set" | "change" | "remove" }
  | { readonly kind: "password" }
  | { readonly kind: "deleteList"; readonly list: TodoList }
  | { readonly kind: "history"; readonly item: TodoItem }
  | { readonly kind: "list"; readonly list: TodoList | undefined }
  | { readonly kind: "move"; readonly item: TodoItem }
  | { readonly kind: "phrase" | "settings" | "signOut" | "sync" };

/** A row of the lists' query. */
export type ListWithOpenCount = TodoList & { readonly open: number };

export interface Toast {
  readonly text: string;
  readonly tone?: "plain" | "bad";
  readonly action?: { readonly label: string; readonly run: () => void };
  /** Whether the toast stays until the user closes it, as bad ones do. */
  readonly stays?: boolean;
}

export interface AppContextValue {
  readonly db: WarrenDatabase;
  readonly undo: UndoStack;
  readonly now: CurrentDay;
  readonly lists: readonly ListWithOpenCount[];
  readonly view: PlanView;
  readonly navigate: (view: PlanView) => void;
  /** The id of the item in the side panel. */
  readonly openId: string | undefined;
  readonly open: (id: string | undefined) => void;
  readonly openDialog: (dialogue: OpenDialog | undefined) => void;
  readonly toast: (toast: Toast) => void;
  readonly losses: LossCounts;
  /** Counts the losses again, after some were resolved or an edit was lost here. */
  readonly recount: () => void;
  /** Shows another database, which is already open. */
  readonly use: (db: WarrenDatabase, toast: Toast) => void;
  /**
   * Opens the database that this browser should show now (`databases.ts`), after the present one
   * was closed.
   */
  readonly reopen: (toast?: Toast) => void;
  /** Runs a step and shows a toast with "Undo", unless it is `quiet`. Failures are shown, too. */
  readonly perform: (
    step: UndoableStep | Promise<UndoableStep | undefined>,
    quiet?: "quiet",
  ) => Promise<void>;
  readonly undoLast: () => void;
  readonly redoLast: () => void;
}

export const AppContext = createContext<AppContextValue | undefined>(undefined);

/** Returns the app's context; only components inside the app can use it. */
export function useApp(): AppContextValue {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error("the app's context is missing");
  return app;
}
