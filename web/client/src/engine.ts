/**
 * What the wasm module gives the worker: `crates/replica-wasm`, by wasm-bindgen.
 *
 * Failures are thrown as `Error`s with a `code`.
 */
import type { SqlValue } from "./api.js";

/** Rows as they cross from wasm to the tab: column-free, so that one text and one array carry many. */
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

/**
 * Whose turn on the connection it is. What takes long gives its turn back while it waits for the
 * network; so whoever calls it has taken a turn, and has one when it ends.
 */
export interface Turns {
  take(): Promise<void>;
  give(): void;
}

/** An object of wasm's: `free` it when its members have been read. */
interface Owned {
  free(): void;
}

/** `/wasm/replica.js`, generated. */
export interface EngineModule {
  default(options: { module_or_path: WebAssembly.Module | URL | Response }): Promise<unknown>;
  /** Takes the pool of OPFS files of this name; rejects with `storage_unavailable` or `storage_busy`. */
  openReplica(name: string, key: Uint8Array | string | undefined, inMemory: boolean): Promise<Replica>;
  SignIn: new (server: string, login: string, password: string, device: string) => SignIn;
}

export type SignIn = Owned;

export interface Replica {
  /** Runs one statement, or several without parameters; the rows are the last one's. */
  run(sql: string, parameters: readonly SqlValue[]): PackedRows & Owned;
  runMany(sql: string, parameters: readonly (readonly SqlValue[])[]): number;
  /** Whether a transaction is open. */
  inTransaction(): boolean;
  /** The tables that a statement reads, views and triggers looked through. */
  tablesRead(sql: string): string[];
  /** The tables that were written to since the last call, by SQL or by a sync; without Warren's. */
  takeChanged(): string[];

  track(tables: readonly string[]): void;
  signIn(request: SignIn, signal: AbortSignal, turns: Turns): Promise<void>;
  /** Forgets the token. */
  signOut(): void;
  token(): string | undefined;
  /** `onProgress(stage, done, total)`; the stages are those of `Progress`. */
  sync(
    onProgress: (stage: "received" | "sent" | "applied", done: number, total: number) => void,
    signal: AbortSignal,
    turns: Turns,
  ): Promise<string>;
  /** Listens to the server's events until it ends; calls when the server has something new. Needs
   * no turn. */
  listen(onState: () => void, signal: AbortSignal, turns: Turns): Promise<void>;
  /** JSON, as `warren status --json` has it (`crates/replica/src/json.rs`); and so on below. */
  status(): string;
  receipt(signal: AbortSignal, turns: Turns): Promise<string>;
  /** The parts of the key as SQL literals, or texts as they are. */
  history(table: string, key: readonly string[]): string;
  conflicts(): string;
  restore(id: string): void;
  phrase(): string | undefined;
  createPhrase(): string;
  usePhrase(words: string): void;

  /** This and the next close and open the file: nothing may be waiting for the network. */
  export(): Uint8Array;
  /** Replaces the file; throws and changes nothing if it is no database, or the key does not open it. */
  import(file: Uint8Array): void;
  /** Gives the file and the pool free. */
  close(): void;
}
