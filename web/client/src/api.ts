/**
 * What a page sees: one database, ordinary SQL, and how it stands with the server.
 *
 * Every call may be made in every tab; one tab's worker owns the file and does the work.
 * Failures are {@link WarrenError}s, told apart by their code.
 */
import type { ErrorCodeJson } from "./shared/error-code-json.js";
import type { ServerLoss, SyncReport } from "./shared/sync-report.js";

export type { ServerLoss, SyncReport } from "./shared/sync-report.js";

export type SqlValue = null | number | bigint | string | boolean | Uint8Array;
/** The name of a table or a column, in a template: `identifier` makes it. */
export interface Identifier {
  /** As SQL has it. */
  readonly quoted: string;
}
/** What a statement takes; a `Date` becomes its ISO 8601 text in UTC. */
export type SqlParameter = SqlValue | Date;
/** What stands in a template: a parameter, a list of them (`IN ${ids}`), or an `identifier`. */
export type TemplateValue = SqlParameter | readonly SqlParameter[] | Identifier;
export type SqlRow = Readonly<Record<string, SqlValue>>;
/** What a type of rows fulfils, an `interface` too: each of its fields is a value of SQL. */
export type RowOf<T> = { readonly [K in keyof T]: SqlValue };

/** What opens an encrypted file: 32 random bytes, or a passphrase that the key is derived from. */
export type FileKey = Uint8Array | string;

/** What to open, and how. */
export interface OpenOptions {
  /** The database's name in this origin: `a`–`z`, `0`–`9`, `-`, `_`. */
  readonly name: string;
  /**
   * SQL that makes the tables, run once. As a list: migrations, each run once and in order, counted
   * in `PRAGMA user_version`; one text is a list of one. What has run may not be edited
   * (`schema_changed`): append to the list.
   */
  readonly schema: string | readonly string[];
  /** Tables that sync; more with {@link WarrenDatabase.track}. */
  readonly track?: readonly string[];
  /** The server's address; the page's own origin if left out. */
  readonly server?: string;
  /** Encrypts the file. Another key, or none, is given later by {@link WarrenDatabase.rekey}. */
  readonly key?: FileKey;
  /** Sync by itself when something changed here or there; `true` unless told otherwise. */
  readonly autoSync?: boolean;
  /** Where the package's other files are, if neither a bundler sees to that nor they lie beside
   * the script that this module is in. */
  readonly assets?: AssetAddresses;
}

/** `worker.js` and `replica_bg.wasm`, both from the page's own origin. */
export interface AssetAddresses {
  readonly worker?: string | URL;
  readonly wasm?: string | URL;
}

export type Unsubscribe = () => void;

/** Something that changes, and can be listened to. */
export interface Observable<T> {
  readonly value: T;
  /** Calls at once with the present value, and again after each change. */
  subscribe(listener: (value: T) => void): Unsubscribe;
}

/** A query whose rows are told anew whenever a table that it reads has changed. */
export interface LiveQuery<T extends RowOf<T>> {
  (onRows: (rows: readonly T[]) => void, onError?: (error: WarrenError) => void): Unsubscribe;
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

/** What runs SQL: the database, or a transaction. */
export interface SqlExecutor {
  /** Runs one statement; the values become bound parameters. */
  sql<T extends RowOf<T> = SqlRow>(
    text: TemplateStringsArray,
    ...values: TemplateValue[]
  ): Promise<T[]>;
  /** The same, the text and its parameters apart. */
  query<T extends RowOf<T> = SqlRow>(
    sql: string,
    parameters?: readonly SqlParameter[],
  ): Promise<QueryResult<T>>;
  /** One statement for each list of parameters, in one transaction; for many rows. */
  executeMany(sql: string, parameters: readonly (readonly SqlParameter[])[]): Promise<number>;
}

export interface QueryResult<T extends RowOf<T> = SqlRow> {
  readonly rows: T[];
  /** Rows inserted, updated or deleted. */
  readonly changes: number;
}

export interface WarrenDatabase extends SqlExecutor {
  readonly name: string;
  readonly status: Observable<DatabaseStatus>;

  live<T extends RowOf<T> = SqlRow>(
    text: TemplateStringsArray,
    ...values: TemplateValue[]
  ): LiveQuery<T>;
  /** The same, the text and its parameters apart. */
  liveQuery<T extends RowOf<T> = SqlRow>(
    sql: string,
    parameters?: readonly SqlParameter[],
  ): LiveQuery<T>;
  /**
   * All or nothing; nobody else's statements run in between, so `work` is to use `tx` alone. Rolled
   * back if `work` throws, or says nothing for 30 s. `leader_lost` means that nothing was done, and
   * that it may be tried again.
   */
  transaction<T>(work: (tx: SqlExecutor) => Promise<T>): Promise<T>;

  /** Begins to sync these tables, with the rows that they have. */
  track(...tables: string[]): Promise<void>;
  /** Syncs now. Where another sync is running, waits for it and then syncs. */
  sync(options?: SyncOptions): Promise<SyncReport>;

  /** Makes an account, and registers this device. */
  signUp(account: SignUpOptions): Promise<void>;
  /** Registers this device; also again, after it was revoked. */
  signIn(credentials: SignInOptions): Promise<void>;
  /** Ends this device's registration. Its rows stay; changes not sent yet are sent after the next
   * {@link signIn}. */
  signOut(): Promise<void>;
  changePassword(change: ChangePasswordOptions): Promise<void>;
  devices(): Promise<DeviceInfo[]>;
  revoke(deviceId: string): Promise<void>;

  /** The words that the other devices need, or `undefined` without end-to-end encryption. */
  phrase(): Promise<string | undefined>;
  /**
   * Encrypts from end to end, and returns the 24 words. If the account is in plain, the next sync
   * sends everything again, encrypted, and the other devices need the words; when each of them has
   * them, or is revoked, the server removes what it has in plain.
   */
  createPhrase(): Promise<string>;
  /**
   * Gives this device the other devices' words; before {@link signIn}, too. Nothing is sent before
   * something has opened with them (`recovery_phrase_unverified`).
   */
  usePhrase(words: string): Promise<void>;
  /**
   * Says that this account is new, and what is here its first data: encrypted if there is a phrase,
   * else in plain. After {@link signIn} to an account without data, nothing is sent before this, or
   * {@link createPhrase} (`encryption_undecided`).
   */
  beginAccount(): Promise<void>;

  /**
   * Writes one cell by somebody who saw `seen` in it, as in a form that was open for a while. What
   * the cell held instead is then a lost edit: {@link conflicts} lists it, on all devices.
   */
  edit(
    table: string,
    key: readonly SqlValue[],
    column: string,
    value: SqlValue,
    given: { readonly seen: SqlValue },
  ): Promise<EditOutcome>;

  /** Every change of a row until the last sync, or the last {@link record}; oldest first. */
  history(table: string, ...key: SqlValue[]): Promise<HistoryEntry[]>;
  /**
   * Makes history of what was written since the last sync. Before rows are deleted that somebody
   * may want back: one that no sync and no call of this has seen leaves nothing behind.
   */
  record(): Promise<void>;
  /** The rows of a table that were deleted last, newest first: 100, unless told otherwise. */
  deleted(table: string, options?: { readonly countMax?: number }): Promise<DeletedRow[]>;
  conflicts(): Promise<Conflict[]>;
  /** Puts a lost edit back. */
  restore(conflictId: string): Promise<void>;
  /** Lets a lost edit be: from the next sync on no device lists it. */
  dismiss(conflictId: string): Promise<void>;
  /**
   * Rows that are live and not shown, {@link DatabaseStatus.held} of them; and deleted ones that
   * other rows refer to and that cannot be shown.
   */
  held(): Promise<HeldRow[]>;
  /**
   * Shows such a row with another value in one column; `constraint_violated` if the value does not
   * fit.
   */
  give(heldId: string, column: string, value: string): Promise<void>;
  /**
   * Joins such a row with the row that is shown in its place ({@link HeldRow.sameAs}): what refers
   * to the first refers to the second from here on, and the first is deleted, on all devices.
   * `constraint_violated`, and nothing changes, if two rows that differ would get one key thereby.
   */
  join(heldId: string): Promise<void>;
  /** Deletes such a row, on all devices; `referenced` if other rows refer to it. */
  letGo(heldId: string): Promise<void>;
  /** How the server and the other devices stand beside this one. */
  receipt(): Promise<SyncStatus>;

  /** The database file, as SQLite knows it; encrypted if it is here. */
  export(): Promise<Uint8Array>;
  /** Replaces the database by a file; it becomes a device of its own. */
  import(file: Uint8Array): Promise<void>;
  /**
   * Encrypts the file with another key, or decrypts it. `from` is the key that it has (`wrong_key`
   * if not), `null` where there is none. Everything stays: rows, unsent changes, account, phrase.
   * The other tabs follow. If this is cut off, the file opens with the one key or with the other.
   */
  rekey(change: KeyChange): Promise<void>;
  close(): Promise<void>;
  /**
   * Closes the database in all tabs (`deleted`) and erases its files; what was not sent is lost.
   * The device stays registered: {@link signOut} first.
   */
  delete(): Promise<void>;
}

export interface KeyChange {
  readonly from: FileKey | null;
  readonly to: FileKey | null;
}

export interface SignInOptions {
  readonly login: string;
  readonly password: string;
  /** What people call this device. */
  readonly device?: string;
  /**
   * For apps that do not encrypt from end to end: an account without data begins in plain, without
   * {@link WarrenDatabase.beginAccount}. One that is encrypted stays so
   * (`recovery_phrase_required`).
   */
  readonly plain?: boolean;
}

export interface SignUpOptions extends SignInOptions {
  /**
   * Encrypts from end to end: there is a {@link WarrenDatabase.phrase} before anything is sent, and
   * only if the account was made.
   */
  readonly sealed?: boolean;
}

export interface ChangePasswordOptions {
  readonly password: string;
  readonly newPassword: string;
  /** Ends every other device of the account. */
  readonly revokeOthers?: boolean;
}

export interface SyncOptions {
  readonly onProgress?: (progress: SyncProgress) => void;
  readonly signal?: AbortSignal;
}

/** Messages received or sent, of how many; or merged and shown, of an unknown number (0). */
export interface SyncProgress {
  readonly stage: "received" | "sent" | "applied";
  readonly done: number;
  readonly total: number;
}

/** How the database stands. */
export interface DatabaseStatus {
  /** Where the file is. `memory`: lost when the tab that holds it closes; `warning` says why. */
  readonly storage: "opfs" | "memory";
  readonly warning?: string;
  /** Whether this tab's worker owns the file. */
  readonly isOwner: boolean;
  readonly account?: { readonly server: string; readonly login: string };
  readonly sealed: boolean;
  /** Whether the file has a key. */
  readonly encrypted: boolean;
  /** Changes that the server has yet to get. */
  readonly unsent: number;
  /** Edits that were found lost since the present leader opened the file: where this grows,
   * {@link WarrenDatabase.conflicts} has more. */
  readonly lost: number;
  /** Rows that are live and not shown: {@link WarrenDatabase.held} lists them. */
  readonly held: number;
  readonly sync: SyncState;
  /** When a sync last ended well, in milliseconds since 1970. */
  readonly syncedMs?: number;
  /** What the server had lost and still lacked then. */
  readonly serverLoss?: ServerLoss;
}

/**
 * - `local`: no account.
 * - `inStep`: both sides held the same set when they last spoke, and nothing changed here since.
 * - `pending`: changes wait for the next sync, which is about to begin.
 * - `offline`: the server cannot be reached; it is tried again by itself, after `retryMs`.
 * - `failed`: the server refuses, or the file does; somebody has to do something.
 */
export type SyncState =
  | { readonly phase: "local" | "inStep" | "pending" }
  | { readonly phase: "syncing"; readonly progress?: SyncProgress }
  | { readonly phase: "offline"; readonly retryMs: number; readonly error: ErrorInfo }
  | { readonly phase: "failed"; readonly error: ErrorInfo };

/**
 * Why something was refused or failed: the codes of the server, the engine and this package, all in
 * `docs/formats/4-errors.md`. A newer server may answer with one that is not here, so a `switch`
 * needs a `default`.
 */
export type ErrorCode = ErrorCodeJson;

export interface ErrorInfo {
  readonly code: ErrorCode;
  readonly message: string;
}

/** As `GET /v1/devices` has it (Format 3). */
export interface DeviceInfo {
  readonly id: string;
  readonly name: string;
  readonly isCurrent: boolean;
  /** 0 if never. */
  readonly seenMs: number;
  readonly createdMs: number;
  readonly unsent: number;
  readonly behind: number;
}

export interface SyncStatus {
  readonly serverCount: number;
  readonly knownCount: number;
  readonly toSend: number;
  readonly toFetch: number;
  readonly equal: boolean;
  readonly devices: readonly DeviceInfo[];
}

/**
 * - `written`: the cell has the new value.
 * - `unseen`: so it has, and what was there, which the author had not seen, is a lost edit.
 * - `missing`: there is no such row any more; nothing was written.
 */
export type EditOutcome = "written" | "unseen" | "missing";

export interface HistoryEntry {
  readonly timestamp: string;
  readonly timeMs: number;
  readonly device: string;
  readonly deleted: boolean;
  readonly cells: SqlRow;
}

/** A row that was deleted, and is not there again. */
export interface DeletedRow {
  readonly key: readonly SqlValue[];
  readonly device: string;
  readonly timeMs: number;
  /** Its columns with their last values. */
  readonly row: SqlRow;
}

/** A row that collides with a newer one, or does not fit its table. */
export interface HeldRow {
  readonly id: string;
  readonly table: string;
  readonly key: readonly SqlValue[];
  /** `displaced` by a row with the same UNIQUE value, refused by a `constraint` of the table, of a
   * key that the table cannot have (`invalid_key`), or `incomplete` until the rest of a large value
   * is here; `dangling_reference`: deleted, and other rows refer to it. */
  readonly kind: "displaced" | "constraint" | "invalid_key" | "incomplete" | "dangling_reference";
  /** The same in words, often SQLite's. */
  readonly reason: string;
  /** Its columns, the key's left out, as far as their values are known. */
  readonly row: SqlRow;
  /**
   * The key of the row that is shown with the same UNIQUE value, for
   * {@link WarrenDatabase.join}.
   */
  readonly sameAs?: readonly SqlValue[];
}

export interface Conflict {
  readonly id: string;
  readonly table: string;
  readonly key: readonly SqlValue[];
  /** Whose edit was lost, and when it was made. */
  readonly device: string;
  readonly timeMs: number;
  /** Whose edit is there instead, and when that was made. */
  readonly keptDevice: string;
  readonly keptMs: number;
  /** What was lost, and what is there instead. */
  readonly lost: SqlRow;
  readonly kept: SqlRow;
  /** Of an edit of the row as a whole, `lost` and `kept` are empty: it was deleted, or not. */
  readonly lostDeleted: boolean;
  readonly keptDeleted: boolean;
}

/** What went wrong; programs go by the code. */
export class WarrenError extends Error {
  override readonly name = "WarrenError";
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
  }
}
