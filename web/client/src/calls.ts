/**
 * What a tab may ask of the owner: the one table of calls, typed, for both sides.
 *
 * `onNewOwner` says what becomes of a call whose owner went away before it answered: `again`, it is
 * asked of the next owner, who knows what was done already (`ledger.ts`), or it is harmless twice;
 * `reject`, it fails with `owner_lost`, because its other half went with the owner.
 */
import type {
  Conflict,
  Credentials,
  DeletedRow,
  Device,
  EditOutcome,
  FileKey,
  HeldRow,
  HistoryEntry,
  KeyChange,
  NewAccount,
  PasswordChange,
  Receipt,
  SqlValue,
  SyncReport,
} from "./api.js";
import type { PackedRows } from "./engine.js";
import type { Statement } from "./statement.js";

export interface Preparation {
  readonly schema: readonly string[];
  readonly track: readonly string[];
  readonly server: string;
  readonly autoSync: boolean;
  /** What the tab was given to open the file: it has to be right also where another tab owns it. */
  readonly key: FileKey | null;
}

/** Rows, and the tables that they were read from. */
export interface Reading {
  readonly packed: PackedRows;
  readonly tables: readonly string[];
}

export interface CellEdit {
  readonly table: string;
  readonly key: readonly SqlValue[];
  readonly column: string;
  readonly value: SqlValue;
  readonly seen: SqlValue;
}

/** What a call is given, and what it answers. */
export interface Calls {
  prepare: [Preparation, void];
  run: [Statement, PackedRows];
  runMany: [{ sql: string; parameters: readonly (readonly SqlValue[])[] }, number];
  read: [Statement, Reading];
  /** Answers when the transaction is open; its number is the transaction's name. */
  begin: [void, void];
  runIn: [Statement & { transaction: number }, PackedRows];
  runManyIn: [
    { sql: string; parameters: readonly (readonly SqlValue[])[]; transaction: number },
    number,
  ];
  commit: [{ transaction: number }, void];
  rollback: [{ transaction: number }, void];
  track: [{ tables: readonly string[] }, void];
  sync: [void, SyncReport];
  signUp: [NewAccount & { server: string }, void];
  signIn: [Credentials & { server: string }, void];
  signOut: [void, void];
  changePassword: [PasswordChange, void];
  devices: [void, Device[]];
  revoke: [{ deviceId: string }, void];
  phrase: [void, string | undefined];
  createPhrase: [void, string];
  beginAccount: [void, void];
  usePhrase: [{ words: string }, void];
  edit: [CellEdit, EditOutcome];
  history: [{ table: string; key: readonly SqlValue[] }, HistoryEntry[]];
  record: [void, void];
  deleted: [{ table: string; countMax: number }, DeletedRow[]];
  held: [void, HeldRow[]];
  give: [{ heldId: string; column: string; value: string }, void];
  join: [{ heldId: string }, void];
  letGo: [{ heldId: string }, void];
  conflicts: [void, Conflict[]];
  restore: [{ conflictId: string }, void];
  dismiss: [{ conflictId: string }, void];
  receipt: [void, Receipt];
  export: [void, Uint8Array];
  import: [{ file: Uint8Array }, void];
  rekey: [KeyChange, void];
}

export type CallName = keyof Calls;
export type Given<K extends CallName> = Calls[K][0];
export type Answered<K extends CallName> = Calls[K][1];

interface Rule {
  readonly onNewOwner: "again" | "reject";
  /** How long the tab waits for the answer. */
  readonly waitMs: number;
}

/** A statement, and what waits before it. */
const STATEMENT_WAIT_MS_MAX = 120_000;
/** One or two requests, each with the time-out of the transport. */
const REQUEST_WAIT_MS_MAX = 120_000;
/** A first sync of a large account on a slow line. */
const SYNC_WAIT_MS_MAX = 3_600_000;

const STATEMENT: Rule = { onNewOwner: "again", waitMs: STATEMENT_WAIT_MS_MAX };
const IN_TRANSACTION: Rule = { onNewOwner: "reject", waitMs: STATEMENT_WAIT_MS_MAX };
const REQUEST: Rule = { onNewOwner: "again", waitMs: REQUEST_WAIT_MS_MAX };
/** Done twice, these would do something else than done once. */
const ONCE: Rule = { onNewOwner: "reject", waitMs: REQUEST_WAIT_MS_MAX };

export const RULES: { readonly [K in CallName]: Rule } = {
  prepare: STATEMENT,
  run: STATEMENT,
  runMany: STATEMENT,
  read: STATEMENT,
  begin: STATEMENT,
  runIn: IN_TRANSACTION,
  runManyIn: IN_TRANSACTION,
  // Whether it was committed is in the ledger.
  commit: STATEMENT,
  rollback: STATEMENT,
  track: STATEMENT,
  sync: { onNewOwner: "again", waitMs: SYNC_WAIT_MS_MAX },
  signUp: ONCE,
  signIn: REQUEST,
  signOut: REQUEST,
  changePassword: ONCE,
  devices: REQUEST,
  revoke: REQUEST,
  phrase: STATEMENT,
  createPhrase: ONCE,
  beginAccount: STATEMENT,
  usePhrase: STATEMENT,
  // Done twice, the second finds what the first wrote.
  edit: STATEMENT,
  history: STATEMENT,
  record: STATEMENT,
  deleted: STATEMENT,
  held: STATEMENT,
  give: STATEMENT,
  join: STATEMENT,
  letGo: STATEMENT,
  conflicts: STATEMENT,
  restore: STATEMENT,
  dismiss: STATEMENT,
  receipt: REQUEST,
  export: STATEMENT,
  import: ONCE,
  rekey: ONCE,
};
