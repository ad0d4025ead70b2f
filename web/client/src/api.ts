/**
 * The public interface of `@warren/client`: one database, ordinary SQL, and the state of its sync.
 *
 * Every call works in every tab; the worker of one tab owns the file and does the work. Every
 * failure is a {@link WarrenError} with a code.
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
/** A part of a statement, created with `fragment` or `identifier`. */
export interface SqlFragment {
  readonly sql: string;
  /** The values for the placeholders in the SQL, in their order. */
  readonly parameters: readonly SqlParameter[];
}
/** A value that a statement accepts; a `Date` becomes its ISO 8601 text in UTC. */
export type SqlParameter = SqlValue | Date;
/** A value in a template: a parameter, a list of them (`IN ${ids}`), or a fragment. */
export type TemplateValue = SqlParameter | readonly SqlParameter[] | SqlFragment;
export type SqlRow = Readonly<Record<string, SqlValue>>;
/** The constraint on a type of rows, also an `interface`: each field is an SQL value. */
export type RowOf<T> = { readonly [K in keyof T]: SqlValue };

/** The key of an encrypted file: 32 random bytes, or a passphrase from which the key is derived. */
export type FileKey = Uint8Array | string;

/** The database to open, and how to open it. */
export interface OpenOptions {
  /** The database's name in this origin: `a`–`z`, `0`–`9`, `-`, `_`. */
  readonly name: string;
  /**
   * The SQL that creates the tables, run once. A list holds migrations, each run once and in
   * order, counted in `PRAGMA user_version`; one text is a list of one. A migration that has run
   * must not be edited (`schema_changed`): append to the list.
   */
  readonly schema: string | readonly string[];
  /** The tables that sync; {@link WarrenDatabase.track} adds more. */
  readonly track?: readonly string[];
  /** The server's address; the page's own origin by default. */
  readonly server?: string;
  /** Encrypts the file. {@link WarrenDatabase.rekey} changes or removes the key later. */
  readonly key?: FileKey;
  /** Syncs automatically after a change here or on the server; `true` by default. */
  readonly autoSync?: boolean;
  /** The addresses of the package's other files, needed if no bundler sets them and the files are
   * not in the folder of the script that contains this module. */
  readonly assets?: AssetAddresses;
}

/** The addresses of `worker.js` and `replica_bg.wasm`, both in the page's own origin. */
export interface AssetAddresses {
  readonly worker?: string | URL;
  readonly wasm?: string | URL;
}

export type Unsubscribe = () => void;

/** A value that changes and can be subscribed to. */
export interface Observable<T> {
  readonly value: T;
  /** Calls the listener at once with the present value, and again after each change. */
  subscribe(listener: (value: T) => void): Unsubscribe;
}

/** A query that delivers its rows again whenever a table that it reads has changed. */
export interface LiveQuery<T extends RowOf<T>> {
  (onRows: (rows: readonly T[]) => void, onError?: (error: WarrenError) => void): Unsubscribe;
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

/** Runs SQL: the database itself, or a transaction. */
export interface SqlExecutor {
  /** Runs one statement; the values become bound parameters. */
  sql<T extends RowOf<T> = SqlRow>(
    text: TemplateStringsArray,
    ...values: TemplateValue[]
  ): Promise<T[]>;
  /** Runs one statement, given as text and parameters. */
  query<T extends RowOf<T> = SqlRow>(
    sql: string,
    parameters?: readonly SqlParameter[],
  ): Promise<QueryResult<T>>;
  /** Runs one statement for each list of parameters, in one transaction; for many rows. */
  executeMany(sql: string, parameters: readonly (readonly SqlParameter[])[]): Promise<number>;
}

export interface QueryResult<T extends RowOf<T> = SqlRow> {
  readonly rows: T[];
  /** The number of rows inserted, updated or deleted. */
  readonly changes: number;
}

export interface WarrenDatabase extends SqlExecutor {
  readonly name: string;
  readonly status: Observable<DatabaseStatus>;

  live<T extends RowOf<T> = SqlRow>(
    text: TemplateStringsArray,
    ...values: TemplateValue[]
  ): LiveQuery<T>;
  /** Creates a live query from text and parameters. */
  liveQuery<T extends RowOf<T> = SqlRow>(
    sql: string,
    parameters?: readonly SqlParameter[],
  ): LiveQuery<T>;
  /**
   * Runs `work` in one transaction, all or nothing. No other statement runs in between, so `work`
   * must use only `tx`. Rolled back if `work` throws, or runs no statement for 30 s. After
   * `leader_lost`, nothing was done, and the transaction can be tried again.
   */
  transaction<T>(work: (tx: SqlExecutor) => Promise<T>): Promise<T>;

  /** Begins to sync these tables, including the rows that they already have. */
  track(...tables: string[]): Promise<void>;
  /** Syncs now. If another sync is running, waits for it and then syncs. */
  sync(options?: SyncOptions): Promise<SyncReport>;

  /** Creates an account, and registers this device. */
  signUp(account: SignUpOptions): Promise<void>;
  /** Registers this device, also again after it was revoked. A database belongs to the login that
   * it first signed in with (`account_differs`). */
  signIn(credentials: SignInOptions): Promise<void>;
  /** Ends this device's registration. Its rows stay; unsent changes are sent after the next
   * {@link signIn}. */
  signOut(): Promise<void>;
  changePassword(change: ChangePasswordOptions): Promise<void>;
  devices(): Promise<DeviceInfo[]>;
  revokeDevice(deviceId: string): Promise<void>;

  /** Returns the 24 words that other devices need; `undefined` without end-to-end encryption. */
  recoveryPhrase(): Promise<string | undefined>;
  /**
   * Turns end-to-end encryption on, and returns the 24 words. If the account is not encrypted yet,
   * the next sync sends everything again, encrypted, and the other devices need the words. When
   * every device has the words or is revoked, the server removes the plaintext that it has.
   */
  createRecoveryPhrase(): Promise<string>;
  /** Gives this device the words that another device shows. Also works before {@link signIn}.
   * Nothing is sent until the words have decrypted something (`recovery_phrase_unverified`). */
  enterRecoveryPhrase(words: string): Promise<void>;
  /**
   * Confirms that this account is new, so that its first data comes from here: encrypted if there
   * is a recovery phrase, as plaintext if not. After {@link signIn} to an account without data,
   * nothing is sent before this call or {@link createRecoveryPhrase} (`encryption_undecided`).
   */
  confirmNewAccount(): Promise<void>;

  /**
   * Writes one cell for an author who saw `seen` in it, as in a form that was open for a while. If
   * the cell held another value, that becomes a lost edit: {@link conflicts} lists it, on all
   * devices.
   */
  edit(
    table: string,
    key: readonly SqlValue[],
    column: string,
    value: SqlValue,
    given: { readonly seen: SqlValue },
  ): Promise<EditOutcome>;

  /** Lists all changes of a row up to the last sync or {@link recordHistory}, the oldest first. */
  history(table: string, ...key: SqlValue[]): Promise<HistoryEntry[]>;
  /**
   * Records the writes since the last sync in the history. Call it before deleting rows that a
   * user may want back: {@link deletedRows} does not list a row that was written and deleted
   * between two syncs.
   */
  recordHistory(): Promise<void>;
  /** Lists the most recently deleted rows of a table, the newest first: 100, or `limit`. */
  deletedRows(table: string, options?: { readonly limit?: number }): Promise<DeletedRow[]>;
  /** Lists pairs of edits that were made without knowledge of each other: one lost, one shown. */
  conflicts(): Promise<Conflict[]>;
  /** Writes a lost edit into its table again. */
  restoreLostEdit(conflictId: string): Promise<void>;
  /** Removes a lost edit from {@link conflicts}, on the other devices with the next sync. */
  dismissLostEdit(conflictId: string): Promise<void>;
  /** Lists rows that exist but cannot be shown ({@link DatabaseStatus.hiddenRowsCount}), and
   * deleted rows that other rows refer to. */
  hiddenRows(): Promise<HiddenRow[]>;
  /** Sets one column of a hidden row to a value with which the row fits, so that it is shown;
   * `constraint_violated` if it still does not fit. */
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

  /** Returns the database file, as SQLite reads it; encrypted if it is encrypted here. */
  export(): Promise<Uint8Array>;
  /** Replaces the database with a file, which becomes a device of its own. The file must not belong
   * to another login than the database (`account_differs`). */
  import(file: Uint8Array): Promise<void>;
  /**
   * Encrypts the file with another key, or decrypts it. `from` is the present key (`wrong_key` if
   * not), or `null` if there is none. Everything stays: rows, unsent changes, account, phrase. The
   * other tabs follow. If this is interrupted, the file opens with one of the two keys.
   */
  rekey(change: KeyChange): Promise<void>;
  close(): Promise<void>;
  /** Closes the database in all tabs (`deleted`) and erases its files; unsent changes are lost. The
   * device stays registered: {@link signOut} first. */
  delete(): Promise<void>;
}

export interface KeyChange {
  readonly from: FileKey | null;
  readonly to: FileKey | null;
}

export interface SignInOptions {
  readonly login: string;
  readonly password: string;
  /** The name that users see for this device. */
  readonly deviceName?: string;
  /**
   * Set by apps without end-to-end encryption: an account without data starts unencrypted, without
   * {@link WarrenDatabase.confirmNewAccount}. An encrypted account stays encrypted
   * (`recovery_phrase_required`).
   */
  readonly allowPlaintext?: boolean;
}

export interface SignUpOptions extends SignInOptions {
  /** Turns end-to-end encryption on. The {@link WarrenDatabase.recoveryPhrase} is created once the
   * server has accepted the account, and before anything else is sent. */
  readonly endToEndEncrypted?: boolean;
}

export interface ChangePasswordOptions {
  readonly password: string;
  readonly newPassword: string;
  /** Revokes every other device of the account. */
  readonly revokeOthers?: boolean;
}

export interface SyncOptions {
  readonly onProgress?: (progress: SyncProgress) => void;
  readonly signal?: AbortSignal;
}

/** The state of the database and of its sync. */
export interface DatabaseStatus {
  /** The place of the file. `memory`: lost when the tab that holds it closes (see `warning`). */
  readonly storage: "opfs" | "memory";
  readonly warning?: string;
  /** Whether this tab's worker has the file open for all tabs. */
  readonly isLeader: boolean;
  readonly account?: { readonly server: string; readonly login: string };
  /** Whether this device has a recovery phrase and encrypts the data that it sends end to end. */
  readonly endToEndEncrypted: boolean;
  /** Whether the file has a key. */
  readonly encrypted: boolean;
  /** The number of changes that have not been sent to the server. */
  readonly unsentCount: number;
  /** The number of conflicts that syncs found since the leader opened the file. When it grows,
   * {@link WarrenDatabase.conflicts} lists more. */
  readonly newConflictsCount: number;
  /** The number of rows that exist but cannot be shown ({@link WarrenDatabase.hiddenRows}). */
  readonly hiddenRowsCount: number;
  readonly sync: SyncState;
  /** The time of the last successful sync, in milliseconds since 1970. */
  readonly lastSyncedMs?: number;
  /** The changes that the server had lost and still lacked after the last successful sync. */
  readonly serverLoss?: ServerLoss;
}

/**
 * The state of the sync.
 *
 * - `local`: this device has no account.
 * - `inSync`: this device and the server had the same changes at the last sync, and nothing has
 *   changed here since.
 * - `pending`: changes wait for the next sync, which is about to begin.
 * - `offline`: the server cannot be reached; the next try is automatic, `retryMs` after the last.
 * - `failed`: the server or the file refuses to sync; a person has to act.
 */
export type SyncState =
  | { readonly phase: "local" | "inSync" | "pending" }
  | { readonly phase: "syncing"; readonly progress?: SyncProgress }
  | { readonly phase: "offline"; readonly retryMs: number; readonly error: ErrorInfo }
  | { readonly phase: "failed"; readonly error: ErrorInfo };

/**
 * The reason why something was refused or failed. `docs/reference/formats/4-errors.md` lists the
 * codes of the server, the engine and this package. A newer server may answer with a code that is
 * not in this list, so a `switch` needs a `default`.
 */
export type ErrorCode = ErrorCodeJson;

export interface ErrorInfo {
  readonly code: ErrorCode;
  readonly message: string;
}

/**
 * The outcome of {@link WarrenDatabase.edit}.
 *
 * - `written`: the cell has the new value.
 * - `unseen`: the cell has the new value; its former one, unseen by the author, is a lost edit.
 * - `missing`: the row no longer exists; nothing was written.
 */
export type EditOutcome = "written" | "unseen" | "missing";

/** One change of a row. */
export interface HistoryEntry {
  /** The unique id of the change. */
  readonly timestamp: string;
  /** The time of the change, in milliseconds since 1970. */
  readonly changedMs: number;
  /** The device that made the change; until its name is known, 16 hex digits. */
  readonly deviceName: string;
  readonly deleted: boolean;
  /** The columns that were written, and their values. */
  readonly cells: SqlRow;
}

/** A row that was deleted and has not been inserted again. */
export interface DeletedRow {
  readonly key: readonly SqlValue[];
  /** The device that deleted the row; until its name is known, 16 hex digits. */
  readonly deviceName: string;
  /** The time of the deletion, in milliseconds since 1970. */
  readonly changedMs: number;
  /** The row's columns with their last values. */
  readonly cells: SqlRow;
}

/** A row that collides with a newer one, or does not fit its table. */
export interface HiddenRow {
  readonly id: string;
  readonly table: string;
  readonly key: readonly SqlValue[];
  /** Why the row is hidden: `displaced` by a row with the same UNIQUE value; refused by a
   * `constraint` of the table; `invalid_key`, which the table cannot have; `incomplete` until the
   * rest of a large value arrives; or `dangling_reference`: deleted, but other rows refer to it. */
  readonly kind: "displaced" | "constraint" | "invalid_key" | "incomplete" | "dangling_reference";
  /** The reason in words, often SQLite's. */
  readonly reason: string;
  /** The row's columns without those of the key, as far as their values are known. */
  readonly cells: SqlRow;
  /** The key of the row that is shown with the same UNIQUE value, for
   * {@link WarrenDatabase.mergeHiddenRow}. */
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
  /** The device that made the edit; until its name is known, 16 hex digits. */
  readonly deviceName: string;
  /** The time of the edit, in milliseconds since 1970. */
  readonly changedMs: number;
  /** Whether the edit deleted the row. */
  readonly deleted: boolean;
  /** The column and its value; empty for an edit of the row as a whole. */
  readonly cells: SqlRow;
}

/** An error of this package; programs decide on its `code`. */
export class WarrenError extends Error {
  override readonly name = "WarrenError";
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
  }
}
