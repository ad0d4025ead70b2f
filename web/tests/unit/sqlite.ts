/** A `ReplicaHandle` on Node's own SQLite: a real database behind the real interface, no server. */
import { DatabaseSync } from "node:sqlite";
import type {
  EngineModule,
  PackedRows,
  ReplicaHandle,
} from "../../client/src/shared/wasm-engine.js";
import type { FileKey, SqlValue } from "../../client/src/api.js";
import type { RemoteStatusJson, ReplicaStatusJson } from "../../client/src/shared/json-types.js";

/** The behavior that a test gives to a replica beyond SQL. */
export interface Script {
  /** Called before each statement; may throw. */
  beforeRun?: (sql: string) => void;
  sync?: ReplicaHandle["sync"];
  listen?: ReplicaHandle["listen"];
  token?: string;
  /** Errors that the next openings throw, one after the other. */
  refusals?: Error[];
  opened?: number;
  /** The key that opens the file. */
  key?: FileKey | undefined;
}

const SAFE = 2n ** 53n;

export function engine(path: string, script: Script = {}): EngineModule {
  return {
    default: () => Promise.resolve(),
    SignInRequest: Object,
    openReplica: (_name, key, inMemory) => {
      const isWrong = !inMemory && key !== script.key;
      const wrong = Object.assign(new Error("another key"), { code: "wrong_key" });
      const refusal = script.refusals?.shift() ?? (isWrong ? wrong : undefined);
      script.opened = (script.opened ?? 0) + 1;
      return refusal === undefined
        ? Promise.resolve(replica(inMemory ? ":memory:" : path, script))
        : Promise.reject(refusal);
    },
  };
}

function never(): never {
  throw Object.assign(new Error("no account here"), { code: "server_not_configured" });
}

/** The behavior of a replica without an account and without messages. */
const WITHOUT_ACCOUNT = {
  track: () => undefined,
  checkAccount: () => undefined,
  signIn: never,
  signOut: () => undefined,
  syncStatus: never,
  edit: never,
  history: () => "[]",
  recordHistory: () => undefined,
  deletedRows: () => "[]",
  hiddenRows: () => "[]",
  resolveHiddenRow: never,
  mergeHiddenRow: never,
  deleteHiddenRow: never,
  conflicts: () => "[]",
  restoreLostEdit: never,
  dismissLostEdit: never,
  recoveryPhrase: () => undefined,
  createRecoveryPhrase: never,
  confirmNewAccount: never,
  enterRecoveryPhrase: never,
  export: () => new Uint8Array(),
  import: never,
} satisfies Partial<ReplicaHandle>;

function status(script: Script): string {
  const account: RemoteStatusJson = {
    server: "http://here",
    login: "ada",
    device_id: "0".repeat(16),
    cursor: 0,
    last_synced_ms: 0,
    server_messages_count: 0,
    in_sync: true,
    server_loss: null,
  };
  const status: ReplicaStatusJson = {
    node_id: "0".repeat(16),
    tables: [],
    messages_count: 0,
    digest: "0".repeat(32),
    content_bytes: 0,
    unsent_count: 0,
    pending_count: 0,
    rejected_count: 0,
    set_aside_count: 0,
    uncaptured_tables: [],
    e2ee: false,
    visibility_overrides: [],
    schema_conflicts: [],
    missing_tables: [],
    missing_constraints: [],
    remote: script.token === undefined ? null : account,
  };
  return JSON.stringify(status);
}

export function replica(path: string, script: Script = {}): ReplicaHandle {
  const db = new DatabaseSync(path);
  const changed = new Set<string>();
  const note = (sql: string): void => {
    for (const [, table] of sql.matchAll(/(?:INTO|UPDATE|DELETE FROM)\s+"?(\w+)/gi)) {
      if (table !== undefined && !table.startsWith("warren_")) {
        changed.add(table);
      }
    }
  };
  return {
    ...WITHOUT_ACCOUNT,
    run(sql, parameters) {
      script.beforeRun?.(sql);
      note(sql);
      if (/;\s*\S/.test(sql)) {
        db.exec(sql);
        return pack([], [], 0);
      }
      const statement = db.prepare(sql);
      statement.setReadBigInts(true);
      const columns = statement.columns().map((column) => column.name);
      const before = total(db);
      const rows = statement.all(...parameters.map(bound)) as Record<string, SqlValue>[];
      const cells = rows.map((row) => columns.map((name) => row[name] ?? null));
      return pack(columns, cells, total(db) - before);
    },
    runMany(sql, parameters) {
      script.beforeRun?.(sql);
      note(sql);
      const statement = db.prepare(sql);
      const before = total(db);
      parameters.forEach((list) => statement.run(...list.map(bound)));
      return total(db) - before;
    },
    inTransaction: () => db.isTransaction,
    tablesRead: (sql) =>
      [...sql.matchAll(/(?:FROM|JOIN)\s+(\w+)/gi)].map(([, table]) => table ?? ""),
    takeChangedTables() {
      const tables = [...changed];
      changed.clear();
      return tables;
    },
    token: () => script.token,
    sync: (...given) => script.sync?.(...given) ?? never(),
    listen: (...given) => script.listen?.(...given) ?? Promise.resolve(),
    status: () => status(script),
    isEncrypted: () => script.key !== undefined,
    hasKey: (key) => key === script.key,
    rekey: (from, to) => {
      if (from !== script.key) {
        throw Object.assign(new Error("another key"), { code: "wrong_key" });
      }
      script.key = to;
    },
    close: () => (db.isOpen ? db.close() : undefined),
  };
}

function total(db: DatabaseSync): number {
  return Number(db.prepare("SELECT total_changes() AS n").get()?.n ?? 0);
}

function bound(value: SqlValue): null | number | bigint | string | Uint8Array {
  return typeof value === "boolean" ? Number(value) : value;
}

/** Packs cells as the wasm module does. */
export function pack(
  columns: string[],
  rows: readonly (readonly SqlValue[])[],
  changes = 0,
): PackedRows {
  const kinds: number[] = [];
  const numbers: number[] = [];
  const integers: bigint[] = [];
  const texts: string[] = [];
  const blobs: Uint8Array[] = [];
  for (const value of rows.flat()) {
    if (value === null) {
      kinds.push(0);
    } else if (typeof value === "string") {
      kinds.push(2);
      texts.push(value);
    } else if (value instanceof Uint8Array) {
      kinds.push(3);
      blobs.push(value);
    } else if (typeof value === "bigint" && (value > SAFE || value < -SAFE)) {
      kinds.push(4);
      integers.push(value);
    } else {
      kinds.push(1);
      numbers.push(Number(value));
    }
  }
  return {
    columns,
    kinds: Uint8Array.from(kinds),
    numbers: Float64Array.from(numbers),
    integers: BigInt64Array.from(integers),
    texts: texts.join(""),
    textLengths: Uint32Array.from(texts, (text) => text.length),
    blobs: Uint8Array.from(blobs.flatMap((blob) => [...blob])),
    blobLengths: Uint32Array.from(blobs, (blob) => blob.length),
    changes,
  };
}
