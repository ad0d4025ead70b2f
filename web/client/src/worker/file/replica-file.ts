/**
 * The open file: the wasm module's replica with this package's types. It leaves nothing behind in
 * the module's memory.
 */
import type {
  Conflict,
  SignInOptions,
  EditOutcome,
  DeletedRow,
  FileKey,
  HiddenRow,
  HistoryEntry,
  SyncProgress,
  SyncStatus,
  SqlValue,
  SyncReport,
} from "../../api.js";
import type { CellEdit } from "../../shared/rpc-methods.js";
import type {
  EngineModule,
  PackedRows,
  ReplicaHandle,
  ConnectionLock,
} from "../../shared/wasm-engine.js";
import {
  toConflicts,
  toDeletedRows,
  toHiddenRows,
  toHistory,
  toSyncStatus,
  toReport,
  toStatus,
} from "../../shared/wire-json.js";
import type { ReplicaStatusJson } from "../../shared/json-types.js";
import { toLiteral } from "../../shared/sql-literals.js";
import { copyOutOfWasm } from "../../shared/packed-rows.js";

type ForwardedMethods = Pick<
  ReplicaHandle,
  | "runMany" | "inTransaction" | "tablesRead" | "takeChangedTables" | "track" | "checkAccount"
  | "signOut" | "token" | "listen" | "recordHistory" | "restoreLostEdit" | "dismissLostEdit"
  | "resolveHiddenRow" | "mergeHiddenRow" | "deleteHiddenRow"
  | "recoveryPhrase" | "createRecoveryPhrase" | "confirmNewAccount" | "enterRecoveryPhrase"
  | "export" | "import" | "isEncrypted" | "hasKey" | "rekey" | "close"
>;

/** The account and the device to register. */
export interface RegistrationParams extends SignInOptions {
  /** Whether the account was just created. */
  readonly isNew: boolean;
}

export interface ReplicaFile extends ForwardedMethods {
  run(sql: string, parameters: readonly SqlValue[]): PackedRows;
  signIn(registration: RegistrationParams, server: string, turns: ConnectionLock): Promise<void>;
  sync(
    onProgress: (progress: SyncProgress) => void,
    signal: AbortSignal,
    turns: ConnectionLock,
  ): Promise<SyncReport>;
  status(): ReplicaStatusJson;
  syncStatus(turns: ConnectionLock): Promise<SyncStatus>;
  edit(edit: CellEdit): EditOutcome;
  history(table: string, key: readonly SqlValue[]): HistoryEntry[];
  deletedRows(table: string, limit: number): DeletedRow[];
  hiddenRows(): HiddenRow[];
  conflicts(): Conflict[];
}

/** A signal that never aborts: requests that are not a sync end by the transport's own time-out. */
const never = new AbortController().signal;

export async function openReplicaFile(
  engine: EngineModule,
  name: string,
  key: FileKey | undefined,
  inMemory: boolean,
): Promise<ReplicaFile> {
  const replica = await engine.openReplica(name, key, inMemory);
  return {
    run: (sql, parameters) => copyOutOfWasm(replica.run(sql, parameters)),
    runMany: (sql, parameters) => replica.runMany(sql, parameters),
    inTransaction: () => replica.inTransaction(),
    tablesRead: (sql) => replica.tablesRead(sql),
    takeChangedTables: () => replica.takeChangedTables(),
    track: (tables) => replica.track(tables),
    signIn({ login, password, deviceName = "", isNew }, server, turns) {
      const request = new engine.SignInRequest(server, login, password, deviceName, isNew);
      return replica.signIn(request, never, turns);
    },
    checkAccount: (server, login) => replica.checkAccount(server, login),
    signOut: () => replica.signOut(),
    token: () => replica.token(),
    async sync(onProgress, signal, turns) {
      const report = (stage: SyncProgress["stage"], done: number, total: number): void =>
        onProgress({ stage, done, total });
      return toReport(await replica.sync(report, signal, turns));
    },
    listen: (onState, signal, turns) => replica.listen(onState, signal, turns),
    status: () => toStatus(replica.status()),
    syncStatus: async (turns) => toSyncStatus(await replica.syncStatus(never, turns)),
    edit: ({ table, key, column, value, seen }) => replica.edit(table, key, column, value, seen),
    history: (table, rowKey) => toHistory(replica.history(table, rowKey.map(toLiteral))),
    recordHistory: () => replica.recordHistory(),
    deletedRows: (table, limit) => toDeletedRows(replica.deletedRows(table, limit)),
    hiddenRows: () => toHiddenRows(replica.hiddenRows()),
    resolveHiddenRow: (id, column, value) => replica.resolveHiddenRow(id, column, value),
    mergeHiddenRow: (id) => replica.mergeHiddenRow(id),
    deleteHiddenRow: (id) => replica.deleteHiddenRow(id),
    conflicts: () => toConflicts(replica.conflicts()),
    restoreLostEdit: (id) => replica.restoreLostEdit(id),
    dismissLostEdit: (id) => replica.dismissLostEdit(id),
    recoveryPhrase: () => replica.recoveryPhrase(),
    createRecoveryPhrase: () => replica.createRecoveryPhrase(),
    confirmNewAccount: () => replica.confirmNewAccount(),
    enterRecoveryPhrase: (words) => replica.enterRecoveryPhrase(words),
    export: () => replica.export(),
    import: (file) => replica.import(file),
    isEncrypted: () => replica.isEncrypted(),
    hasKey: (given) => replica.hasKey(given),
    rekey: (from, to) => replica.rekey(from, to),
    close: () => replica.close(),
  };
}
