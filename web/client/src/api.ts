/**
 * What a page sees: one database, ordinary SQL, and how it stands with the server.
 *
 * Every call may be made in every tab; one tab's worker owns the file and does the work.
 * Failures are {@link WarrenError}s, told apart by their code.
 */
import type { ErrorCodeJson } from "./shared/error-code-json.js";
import type {
  DeviceInfo,
  ServerLoss,
  SyncProgress,
  SyncReport,
  SyncStatus,
} from "./shared/sync-report.js";

export type {
  DeviceInfo,
  RenumberedRow,
  ServerLoss,
  SyncProgress,
  SyncReport,
  SyncStatus,
} from "./shared/sync-report.js";

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
  revokeDevice(deviceId: string): Promise<void>;

  /** The 24 words that other devices need; `undefined` without end-to-end encryption. */
  recoveryPhrase(): Promise<string | undefined>;
  /**
   * Turns end-to-end encryption on, and returns the 24 words. If the account is not encrypted yet,
   * the next sync sends everything again, encrypted, and the other devices need the words. When
   * each of them has them, or is revoked, the server removes what it has as plaintext.
   */
  createRecoveryPhrase(): Promise<string>;
  /**
   * Gives this device the words that another device shows. Also works before {@link signIn}.
   * Nothing is sent until the words have decrypted something (`recovery_phrase_unverified`).
   */
  enterRecoveryPhrase(words: string): Promise<void>;
  /**
   * Confirms that this account is new, so that its first data comes from here: encrypted if there
   * is a recovery phrase, as plaintext if not. After {@link signIn} to an account without data,
   * nothing is sent before this call or {@link createRecoveryPhrase} (`encryption_undecided`).
   */
  confirmNewAccount(): Promise<void>;

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

  /** All changes of a row up to the last sync or {@link recordHistory}, the oldest first. */
  history(table: string, ...key: SqlValue[]): Promise<HistoryEntry[]>;
  /**
   * Records what was written since the last sync in the history. Call it before deleting rows that
   * somebody may want back: {@link deletedRows} does not list a row that was written and deleted
   * between two syncs.
   */
  recordHistory(): Promise<void>;
  /** The rows of a table that were deleted last, the newest first: 100, or `limit` of them. */
  deletedRows(table: string, options?: { readonly limit?: number }): Promise<DeletedRow[]>;
  /** Lists pairs of edits that were made without knowledge of each other: one lost, one shown. */
  conflicts(): Promise<Conflict[]>;
  /** Writes a lost edit into its table again. */
  restoreLostEdit(conflictId: string): Promise<void>;
  /** Removes a lost edit from {@link conflicts}, on the other devices with the next sync. */
  dismissLostEdit(conflictId: string): Promise<void>;
  /**
   * Lists rows that exist but cannot be shown ({@link DatabaseStatus.hiddenRowsCount}), and deleted
   * rows that other rows refer to.
   */
  hiddenRows(): Promise<HiddenRow[]>;
  /**
   * Sets one column of a hidden row to a value with which the row fits, so that it is shown;
   * `constraint_violated` if it still does not fit.
   */
  resolveHiddenRow(hiddenRowId: string, column: string, value: string): Promise<void>;
  /**
   * Merges a hidden row into the row that is shown in its place ({@link HiddenRow.sameAs}):
   * references to the first become references to the second, and the first is deleted, on all
   * devices. If two rows that differ would get the same key, this fails with `constraint_violated`
   * and changes nothing.
   */
  mergeHiddenRow(hiddenRowId: string): Promise<void>;
  /** Deletes a hidden row on all devices; `referenced` if other rows refer to it. */
  deleteHiddenRow(hiddenRowId: string): Promise<void>;
  /** Asks the server which changes it and each of the account's devices still lack. */
  syncStatus(): Promise<SyncStatus>;

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
  readonly deviceName?: string;
  /**
   * For apps without end-to-end encryption: an account without data starts unencrypted, without
   * {@link WarrenDatabase.confirmNewAccount}. An encrypted account stays encrypted
   * (`recovery_phrase_required`).
   */
  readonly allowPlaintext?: boolean;
}

export interface SignUpOptions extends SignInOptions {
  /**
   * Turns end-to-end encryption on. The {@link WarrenDatabase.recoveryPhrase} is created once the
   * server has accepted the account, and before anything else is sent.
   */
  readonly endToEndEncrypted?: boolean;
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

/** The state of the database and of its sync. */
export interface DatabaseStatus {
  /** Where the file is. `memory`: lost when the tab that holds it closes; `warning` says why. */
  readonly storage: "opfs" | "memory";
  readonly warning?: string;
  /** Whether this tab's worker has the file open for all tabs. */
  readonly isLeader: boolean;
  readonly account?: { readonly server: string; readonly login: string };
  /** Whether this device has a recovery phrase, and what it sends is encrypted end to end. */
  readonly endToEndEncrypted: boolean;
  /** Whether the file has a key. */
  readonly encrypted: boolean;
  /** Changes that have not been sent to the server. */
  readonly unsentCount: number;
  /** Conflicts that syncs found since the leader opened the file. When this grows,
   * {@link WarrenDatabase.conflicts} lists more. */
  readonly newConflictsCount: number;
  /** Rows that exist but cannot be shown: {@link WarrenDatabase.hiddenRows} lists them. */
  readonly hiddenRowsCount: number;
  readonly sync: SyncState;
  /** When a sync last succeeded, in milliseconds since 1970. */
  readonly lastSyncedMs?: number;
  /** What the server had lost and still lacked then. */
  readonly serverLoss?: ServerLoss;
}

/**
 * - `local`: no account.
 * - `inSync`: this device and the server had the same changes at the last sync, and nothing has
 *   changed here since.
 * - `pending`: changes wait for the next sync, which is about to begin.
 * - `offline`: the server cannot be reached; it is tried again by itself, after `retryMs`.
 * - `failed`: the server refuses, or the file does; somebody has to do something.
 */
export type SyncState =
  | { readonly phase: "local" | "inSync" | "pending" }
  | { readonly phase: "syncing"; readonly progress?: SyncProgress }
  | { readonly phase: "offline"; readonly retryMs: number; readonly error: ErrorInfo }
  | { readonly phase: "failed"; readonly error: ErrorInfo };

/**
 * Why something was refused or failed: the codes of the server, the engine and this package, all in
 * `docs/reference/formats/4-errors.md`. A newer server may answer with one that is not here, so a
 * `switch` needs a `default`.
 */
export type ErrorCode = ErrorCodeJson;

export interface ErrorInfo {
  readonly code: ErrorCode;
  readonly message: string;
}

/**
 * - `written`: the cell has the new value.
 * - `unseen`: so it has, and what was there, which the author had not seen, is a lost edit.
 * - `missing`: there is no such row any more; nothing was written.
 */
export type EditOutcome = "written" | "unseen" | "missing";

/** One change of a row. */
export interface HistoryEntry {
  /** Identifies the change. */
  readonly timestamp: string;
  /** When it was made, in milliseconds since 1970. */
  readonly changedMs: number;
  /** The device that made it; until its name is known, 16 hex digits. */
  readonly deviceName: string;
  readonly deleted: boolean;
  /** The columns that were written, and their values. */
  readonly cells: SqlRow;
}

/** A row that was deleted and has not been inserted again. */
export interface DeletedRow {
  readonly key: readonly SqlValue[];
  /** The device that deleted it; until its name is known, 16 hex digits. */
  readonly deviceName: string;
  /** When it was deleted, in milliseconds since 1970. */
  readonly changedMs: number;
  /** Its columns with their last values. */
  readonly cells: SqlRow;
}

/** A row that collides with a newer one, or does not fit its table. */
export interface HiddenRow {
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
  readonly cells: SqlRow;
  /**
   * The key of the row that is shown with the same UNIQUE value, for
   * {@link WarrenDatabase.mergeHiddenRow}.
   */
  readonly sameAs?: readonly SqlValue[];
}

/** Two edits of a cell or a row that were made without knowledge of each other. */
export interface Conflict {
  readonly id: string;
  readonly table: string;
  readonly key: readonly SqlValue[];
  readonly lost: ConflictEdit;
  /** The edit that the table shows instead. */
  readonly shown: ConflictEdit;
}

export interface ConflictEdit {
  /** The device that made it; until its name is known, 16 hex digits. */
  readonly deviceName: string;
  /** When it was made, in milliseconds since 1970. */
  readonly changedMs: number;
  /** Whether it deleted the row. */
  readonly deleted: boolean;
  /** The column and its value; empty for an edit of the row as a whole. */
  readonly cells: SqlRow;
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
