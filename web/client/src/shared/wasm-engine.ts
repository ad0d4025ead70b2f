/**
 * The interface of the wasm module for the worker: `crates/replica-wasm`, by wasm-bindgen.
 *
 * Failures are thrown as `Error`s with a `code`.
 */
import type { EditOutcome, FileKey, SqlValue } from "../api.js";

/** Rows as they cross from wasm to the tab: one text and a few arrays carry many. */
export interface PackedRows {
  readonly columns: string[];
  /** One kind per cell, row by row: 0 NULL, 1 number, 2 text, 3 BLOB, 4 integer beyond 2⁵³. */
  readonly kinds: Uint8Array;
  readonly numbers: Float64Array;
  readonly integers: BigInt64Array;
  /** All texts, concatenated; `textLengths` has their lengths in UTF-16 units. */
  readonly texts: string;
  readonly textLengths: Uint32Array;
  readonly blobs: Uint8Array;
  readonly blobLengths: Uint32Array;
  readonly changes: number;
}

/** The generated module, which is a part of the worker. */
export interface EngineModule {
  default(options: { module_or_path: WebAssembly.Module }): Promise<unknown>;
  /** Takes the pool of OPFS files of this name; rejects with `storage_unavailable` or `busy`. */
  openReplica(
    name: string,
    key: FileKey | undefined,
    inMemory: boolean,
  ): Promise<ReplicaHandle>;
  readonly SignInRequest: new (
    server: string,
    login: string,
    password: string,
    deviceName: string,
    isNew: boolean,
  ) => SignInRequest;
}

/** The device to register, and the server; `signIn` consumes it. */
export type SignInRequest = object;

/**
 * The lock on the connection, which callers hold in turns. A function that takes this lock is
 * called while the lock is held. It releases the lock before it waits for the network, acquires it
 * again before it reads the answer, and still holds it when it ends.
 */
export interface ConnectionLock {
  acquire(): Promise<void>;
  release(): void;
}

/**
 * A replica in the wasm module. Its JSON is that of `warren --json`
 * (`crates/replica/src/inspect/json.rs`).
 */
export interface ReplicaHandle {
  /** Runs one statement, or several without parameters; returns the rows of the last one. */
  run(sql: string, parameters: readonly SqlValue[]): PackedRows & WasmOwned;
  /** Runs one statement for each list of parameters; does not begin a transaction. */
  runMany(sql: string, parameters: readonly (readonly SqlValue[])[]): number;
  /** Whether a transaction is open. */
  inTransaction(): boolean;
  /** Lists the tables that a statement reads, also through views and triggers. */
  tablesRead(sql: string): string[];
  /** Lists the tables written to since the last call, by SQL or by a sync, without Warren's own. */
  takeChangedTables(): string[];

  track(tables: readonly string[]): void;
  signIn(request: SignInRequest, signal: AbortSignal, turns: ConnectionLock): Promise<void>;
  /** Throws if the database belongs to another account. */
  checkAccount(server: string, login: string): void;
  /** Deletes the token. */
  signOut(): void;
  token(): string | undefined;
  /** Syncs. It calls `onProgress(stage, done, total)`; the stages are those of `SyncProgress`. */
  sync(
    onProgress: (stage: "received" | "sent" | "applied", done: number, total: number) => void,
    signal: AbortSignal,
    turns: ConnectionLock,
  ): Promise<string>;
  /** Listens to the server's events until the stream ends; calls `onState` when the server has
   * something new. The caller does not need to hold the lock. */
  listen(onState: () => void, signal: AbortSignal, turns: ConnectionLock): Promise<void>;
  status(): string;
  syncStatus(signal: AbortSignal, turns: ConnectionLock): Promise<string>;
  edit(
    table: string,
    key: readonly SqlValue[],
    column: string,
    value: SqlValue,
    seen: SqlValue,
  ): EditOutcome;
  /** Lists a row's changes. The parts of the key are SQL literals, or unquoted texts. */
  history(table: string, key: readonly string[]): string;
  recordHistory(): void;
  deletedRows(table: string, limit: number): string;
  hiddenRows(): string;
  resolveHiddenRow(id: string, column: string, value: string): void;
  mergeHiddenRow(id: string): void;
  deleteHiddenRow(id: string): void;
  conflicts(): string;
  restoreLostEdit(id: string): void;
  dismissLostEdit(id: string): void;
  recoveryPhrase(): string | undefined;
  createRecoveryPhrase(): string;
  confirmNewAccount(): void;
  enterRecoveryPhrase(words: string): void;

  /** Closes and opens the file: nothing may wait for the network at the same time. */
  export(): Uint8Array;
  /** Replaces the file; throws and changes nothing if it is not a database, or the key does not
   * open it. As with `export`, nothing may wait for the network. */
  import(file: Uint8Array): void;
  isEncrypted(): boolean;
  /** Whether this is the file's key. */
  hasKey(key: FileKey | undefined): boolean;
  /** Changes the key; throws `wrong_key` and changes nothing if `from` is not the key. As with
   * `export`, nothing may wait for the network. */
  rekey(from: FileKey | undefined, to: FileKey | undefined): void;
  /** Closes the file, and releases it and the pool. */
  close(): void;
}

/** An object in the wasm module's memory, which stays there until it is freed. */
export interface WasmOwned {
  free?(): void;
}
