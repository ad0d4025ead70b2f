/** The tab's side of a database: {@link open} returns it. */
import type {
  WarrenDatabase,
  ErrorInfo,
  FileKey,
  LiveQuery,
  OpenOptions,
  SqlExecutor,
  QueryResult,
  RowOf,
  SqlParameter,
  DatabaseStatus,
  TemplateValue,
  Unsubscribe,
} from "../api.js";
import { WarrenError } from "../api.js";
import { RpcClient } from "./rpc-client.js";
import type {
  RpcResult,
  RpcMethodName,
  RpcParams,
  PrepareParams,
  SqlStatement,
} from "../shared/rpc-methods.js";
import { systemTimeSource } from "../shared/time-source.js";
import { deleteDatabase } from "./delete-database.js";
import { toWarrenError } from "../shared/errors.js";
import { toServerUrl } from "../shared/server-url.js";
import { createLiveQueries, type LiveQueries } from "./live-queries.js";
import { newPeerId } from "../shared/tab-messages.js";
import { observable, type WritableObservable } from "./observable.js";
import { unpack } from "../shared/packed-rows.js";
import { here, workerSource } from "./worker-source.js";
import { validateStatement, fromTemplate } from "./statement.js";
import { TabConnection } from "./tab-connection.js";

/** The number of rows that {@link WarrenDatabase.deletedRows} lists if the call sets no limit. */
const DELETED_ROWS_LIMIT = 100;

const INITIAL_STATUS: DatabaseStatus = {
  storage: "opfs",
  isLeader: false,
  endToEndEncrypted: false,
  encrypted: false,
  unsentCount: 0,
  newConflictsCount: 0,
  hiddenRowsCount: 0,
  sync: { phase: "local" },
};

/**
 * Opens a database, or creates it: when this returns, its tables exist.
 *
 * @example
 * const db = await open({
 *   name: "notes",
 *   schema: "CREATE TABLE note (id TEXT PRIMARY KEY, text TEXT NOT NULL)",
 *   track: ["note"],
 * });
 * db.live`SELECT id, text FROM note ORDER BY id`((rows) => show(rows));
 * await db.sql`INSERT INTO note VALUES (${crypto.randomUUID()}, ${text})`;
 */
export async function open(options: OpenOptions): Promise<WarrenDatabase> {
  const preparation = toPreparation(options);
  const tab = newPeerId();
  const asks = new RpcClient(tab, systemTimeSource);
  const status = observable(INITIAL_STATUS);
  const live = createLiveQueries((statement) => asks.invoke("read", statement).answer);
  let ready = (): void => undefined;
  let refuse = (_: WarrenError): void => undefined;
  const prepared = new Promise<void>((resolve, reject) => {
    ready = resolve;
    refuse = reject;
  });
  let statusArrived = (): void => undefined;
  const firstStatus = new Promise<void>((resolve) => {
    statusArrived = resolve;
  });
  // If the connection fails to open, nothing awaits this promise.
  prepared.catch(() => undefined);
  // After a failure no more calls are sent: a status still on its way must not hide the failure.
  let isOver = false;
  const failed = (error: ErrorInfo): void => {
    isOver = true;
    refuse(failureOf(error));
    asks.rejectAll(error);
    status.set({ ...status.value, sync: { phase: "failed", error } });
  };
  let isLeader = false;
  let key = options.key ?? null;
  const link = await TabConnection.open({
    name: options.name,
    tab,
    key: options.key,
    workers: workerSource(options.assets),
    wasm: options.assets?.wasm === undefined ? undefined : here(options.assets.wasm),
    clock: systemTimeSource,
    locks: (navigator as { locks?: LockManager }).locks,
    onLeader: (id, post, isOwn) => {
      isLeader = isOwn;
      asks.setLeader(id, post, () => {
        const { answer } = asks.invoke("prepare", { ...preparation, key });
        answer.then(ready, (thrown: unknown) => failed(toWarrenError(thrown)));
      });
      // Writes that happened while there was no leader were not announced.
      live.changedAll();
    },
    onRekeyed: (changed) => {
      key = changed;
    },
    onStatus: (own) => {
      if (!isOver) {
        status.set({ ...own, isLeader });
      }
      statusArrived();
    },
    onChanged: live.changed,
    onAnswer: (message) => asks.handleMessage(message),
    onFailed: failed,
  });
  try {
    await prepared;
    await firstStatus;
  } catch (thrown) {
    await link.close();
    throw thrown;
  }
  return database({ options, server: preparation.server, asks, status, live, link });
}

function failureOf(error: ErrorInfo): WarrenError {
  return new WarrenError(error.code, error.message);
}

function toPreparation(options: OpenOptions): Omit<PrepareParams, "key"> {
  if (!/^[a-z0-9_-]{1,64}$/.test(options.name)) {
    const rule = "a database name must have 1 to 64 characters of a–z, 0–9, - and _";
    throw new WarrenError("invalid_argument", `${rule}: "${options.name}"`);
  }
  checkKey(options.key);
  return {
    schema: typeof options.schema === "string" ? [options.schema] : options.schema,
    track: options.track ?? [],
    server: toServerUrl(options.server ?? location.origin, location.origin),
    autoSync: options.autoSync ?? true,
  };
}

function checkKey(key: FileKey | null | undefined): void {
  if (key instanceof Uint8Array && key.length !== 32) {
    throw new WarrenError("invalid_argument", `a key must have 32 bytes, not ${key.length}`);
  }
  if (key === "") {
    throw new WarrenError("invalid_argument", "a passphrase must not be empty");
  }
}

interface DatabaseDeps {
  readonly options: OpenOptions;
  readonly server: string;
  readonly asks: RpcClient;
  readonly status: WritableObservable<DatabaseStatus>;
  readonly live: LiveQueries;
  readonly link: TabConnection;
}

type RpcCaller = <K extends RpcMethodName>(
  method: K,
  params: RpcParams<K>,
) => Promise<RpcResult<K>>;

function database({ options, server, asks, status, live, link }: DatabaseDeps): WarrenDatabase {
  const ask: RpcCaller = (method, params) => asks.invoke(method, params).answer;
  const close = async (): Promise<void> => {
    live.end();
    asks.rejectAll({ code: "closed", message: `the database ${options.name} was closed` });
    await link.close();
  };
  return {
    name: options.name,
    status,
    ...queries(
      (statement) => ask("run", statement),
      (params) => ask("runMany", params),
    ),
    live: (text, ...values) => liveQuery(live, fromTemplate(text, values)),
    liveQuery: (sql, parameters = []) => liveQuery(live, validateStatement(sql, parameters)),
    transaction: (work) => transaction(asks, work),
    track: (...tables) => ask("track", { tables }),
    sync: ({ onProgress, signal } = {}) =>
      asks.invoke("sync", undefined, { onProgress, signal }).answer,
    signUp: (credentials) => ask("signUp", { ...credentials, server }),
    signIn: (credentials) => ask("signIn", { ...credentials, server }),
    signOut: () => ask("signOut", undefined),
    changePassword: (change) => ask("changePassword", change),
    devices: () => ask("devices", undefined),
    revokeDevice: (deviceId) => ask("revokeDevice", { deviceId }),
    recoveryPhrase: () => ask("recoveryPhrase", undefined),
    createRecoveryPhrase: () => ask("createRecoveryPhrase", undefined),
    confirmNewAccount: () => ask("confirmNewAccount", undefined),
    enterRecoveryPhrase: (words) => ask("enterRecoveryPhrase", { words }),
    edit: (table, key, column, value, { seen }) => {
      validateStatement(`an edit of ${table}.${column}`, [...key, value, seen]);
      return ask("edit", { table, key, column, value, seen });
    },
    history: (table, ...key) => ask("history", { table, key }),
    recordHistory: () => ask("recordHistory", undefined),
    deletedRows: (table, { limit = DELETED_ROWS_LIMIT } = {}) =>
      ask("deletedRows", { table, limit }),
    hiddenRows: () => ask("hiddenRows", undefined),
    resolveHiddenRow: (id, column, value) => ask("resolveHiddenRow", { id, column, value }),
    mergeHiddenRow: (id) => ask("mergeHiddenRow", { id }),
    deleteHiddenRow: (id) => ask("deleteHiddenRow", { id }),
    conflicts: () => ask("conflicts", undefined),
    restoreLostEdit: (conflictId) => ask("restoreLostEdit", { conflictId }),
    dismissLostEdit: (conflictId) => ask("dismissLostEdit", { conflictId }),
    syncStatus: () => ask("syncStatus", undefined),
    export: () => ask("export", undefined),
    import: (file) => ask("import", { file }),
    async rekey({ from, to }) {
      [from, to].forEach(checkKey);
      await ask("rekey", { from, to });
    },
    close,
    async delete() {
      await close();
      await deleteDatabase(options.name);
    },
  };
}

function liveQuery<T extends RowOf<T>>(live: LiveQueries, statement: SqlStatement): LiveQuery<T> {
  const subscribe = (
    onRows: (rows: readonly T[]) => void,
    onError?: (error: WarrenError) => void,
  ): Unsubscribe => live.subscribe(statement, onRows, onError);
  return Object.assign(subscribe, statement);
}

function queries(
  run: (statement: SqlStatement) => Promise<RpcResult<"run">>,
  runMany: (params: RpcParams<"runMany">) => Promise<number>,
): SqlExecutor {
  const query = async <T extends RowOf<T>>(statement: SqlStatement): Promise<QueryResult<T>> => {
    const packed = await run(statement);
    return { rows: unpack<T>(packed), changes: packed.changes };
  };
  return {
    async sql<T extends RowOf<T>>(text: TemplateStringsArray, ...values: TemplateValue[]) {
      return (await query<T>(fromTemplate(text, values))).rows;
    },
    async query<T extends RowOf<T>>(sql: string, parameters: readonly SqlParameter[] = []) {
      return query<T>(validateStatement(sql, parameters));
    },
    async executeMany(sql, parameters) {
      return runMany({
        sql,
        parameters: parameters.map((list) => validateStatement(sql, list).parameters),
      });
    },
  };
}

async function transaction<T>(asks: RpcClient, work: (tx: SqlExecutor) => Promise<T>): Promise<T> {
  const { number, answer } = asks.invoke("begin", undefined);
  await answer;
  const { leadersCount } = asks;
  const ask: RpcCaller = (method, params) => {
    if (asks.leadersCount !== leadersCount) {
      const message = "the leader tab is gone: the transaction was not committed";
      return Promise.reject(new WarrenError("leader_lost", message));
    }
    return asks.invoke(method, params).answer;
  };
  let result: T;
  try {
    result = await work(
      queries(
        (statement) => ask("runIn", { ...statement, transaction: number }),
        (params) => ask("runManyIn", { ...params, transaction: number }),
      ),
    );
  } catch (thrown) {
    // A failed rollback means that the transaction has already ended; the first error is reported.
    await ask("rollback", { transaction: number }).catch(() => undefined);
    throw thrown;
  }
  await ask("commit", { transaction: number });
  return result;
}
