/**
 * What the wasm module gives the worker: `crates/replica-wasm`, by wasm-bindgen.
 *
 * Failures are thrown as `Error`s with a `code`.
 */
import type { EditOutcome, FileKey, SqlValue } from "../api.js";

/** Rows as they cross from wasm to the tab: one text and a few arrays carry many. */
export interface PackedRows {
  readonly columns: string[];
  /** One per cell, row by row: 0 NULL, 1 number, 2 text, 3 BLOB, 4 integer beyond 2⁵³. */
  readonly kinds: Uint8Array;
  readonly numbers: Float64Array;
  readonly integers: BigInt64Array;
  /** All texts, one after the other, and their lengths in UTF-16 units. */
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

/** Whom to register, and where: consumed by `signIn`. */
export type SignInRequest = object;

/**
 * Whose turn on the connection it is. What takes them is called in a turn of its own, gives it back
 * before it waits for the network, takes another before it looks at the answer, and ends in a turn.
 */
export interface ConnectionLock {
  acquire(): Promise<void>;
  release(): void;
}

/** JSON is that of `warren --json` (`crates/replica/src/inspect/json.rs`). */
export interface ReplicaHandle {
  /** Runs one statement, or several without parameters; the rows are the last one's. */
  run(sql: string, parameters: readonly SqlValue[]): PackedRows & WasmOwned;
  /** Not in a transaction of its own. */
  runMany(sql: string, parameters: readonly (readonly SqlValue[])[]): number;
  /** Whether a transaction is open. */
  inTransaction(): boolean;
  /** The tables that a statement reads, views and triggers looked through. */
  tablesRead(sql: string): string[];
  /** The tables that were written to since the last call, by SQL or by a sync; without Warren's. */
  takeChangedTables(): string[];

  track(tables: readonly string[]): void;
  signIn(request: SignInRequest, signal: AbortSignal, turns: ConnectionLock): Promise<void>;
  /** Forgets the token. */
  signOut(): void;
  token(): string | undefined;
  /** `onProgress(stage, done, total)`; the stages are those of `SyncProgress`. */
  sync(
    onProgress: (stage: "received" | "sent" | "applied", done: number, total: number) => void,
    signal: AbortSignal,
    turns: ConnectionLock,
  ): Promise<string>;
  /** Listens to the server's events until it ends; calls when the server has something new. Needs
   * no turn. */
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
  /** The parts of the key as SQL literals, or texts as they are. */
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

  /** Closes and opens the file: nothing may wait for the network meanwhile. */
  export(): Uint8Array;
  /** Replaces the file; throws and changes nothing if it is no database, or the key does not open
   * it. As with `export`, nothing may wait for the network. */
  import(file: Uint8Array): void;
  isEncrypted(): boolean;
  /** Whether this is the file's key. */
  hasKey(key: FileKey | undefined): boolean;
  /** Throws `wrong_key` and changes nothing if `from` is not the key. As with `export`, nothing may
   * wait for the network. */
  rekey(from: FileKey | undefined, to: FileKey | undefined): void;
  /** Gives the file and the pool free. */
  close(): void;
}

/** What lies in the wasm module's memory until it is freed. */
export interface WasmOwned {
  free?(): void;
}
