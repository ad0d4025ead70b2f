/**
 * What every part of the screen may use: the database, the steps with their undo, where the user
 * is, and which dialog is open.
 */
import type { Database } from "@warren/client";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Item, List } from "./data/schema.js";
import type { Step, Undo } from "./data/undo.js";
import type { Now, View } from "./data/views.js";
import type { Losses } from "./sync/losses.js";

/** The dialogs; at most one is open. */
export type Dialogue =
  | { readonly kind: "account"; readonly mode: "signUp" | "signIn" }
  | { readonly kind: "conflicts" | "deleted" | "enterPhrase" | "import" | "keys" | "newAccount" }
  | { readonly kind: "passcode"; readonly change: "set" | "change" | "remove" }
  | { readonly kind: "password" }
  | { readonly kind: "deleteList"; readonly list: List }
  | { readonly kind: "history"; readonly item: Item }
  | { readonly kind: "list"; readonly list: List | undefined }
  | { readonly kind: "move"; readonly item: Item }
  | { readonly kind: "phrase" | "settings" | "signOut" | "sync" };

/** A row of the lists' query. */
export type CountedList = List & { readonly open: number };

export interface Toast {
  readonly text: string;
  readonly tone?: "plain" | "bad";
  readonly action?: { readonly label: string; readonly run: () => void };
  /** It is there until somebody closes it, as bad ones are. */
  readonly stays?: boolean;
}

export interface App {
  readonly db: Database;
  readonly undo: Undo;
  readonly now: Now;
  readonly lists: readonly CountedList[];
  readonly view: View;
  readonly go: (view: View) => void;
  /** The item in the side panel. */
  readonly openId: string | undefined;
  readonly open: (id: string | undefined) => void;
  readonly show: (dialogue: Dialogue | undefined) => void;
  readonly toast: (toast: Toast) => void;
  readonly losses: Losses;
  /** After some were settled. */
  readonly recount: () => void;
  /** Shows another database, which is open. */
  readonly use: (db: Database, toast: Toast) => void;
  /** Opens what this browser shows now (`databases.ts`), after the present database was closed. */
  readonly reopen: (toast?: Toast) => void;
  /** Runs a step; says so, with "Undo", unless it is `quiet`. Failures are told, too. */
  readonly act: (step: Step | Promise<Step | undefined>, quiet?: "quiet") => Promise<void>;
  readonly undoLast: () => void;
  readonly redoLast: () => void;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error("the app's context is missing");
  return app;
}
