/**
 * The calls that a tab can send to the leader: one typed table for both sides.
 *
 * `onLeaderChange` says what happens to a call whose leader ended before it answered. `retry`: the
 * call is sent to the next leader, which knows the calls that were done (`idempotency-table.ts`),
 * or the call does no harm when done twice. `reject`: the call fails with `leader_lost`, because
 * its other half was lost with the leader.
 */
import type {
  Conflict,
  SignInOptions,
  DeletedRow,
  DeviceInfo,
  EditOutcome,
  FileKey,
  HiddenRow,
  HistoryEntry,
  KeyChange,
  SignUpOptions,
  ChangePasswordOptions,
  SyncStatus,
  SqlValue,
  SyncReport,
} from "../api.js";
import type { PackedRows } from "./wasm-engine.js";

/** A statement, and the values of its parameters. */
export interface SqlStatement {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

export interface PrepareParams {
  readonly schema: readonly string[];
  readonly track: readonly string[];
  readonly server: string;
  readonly autoSync: boolean;
  /** The key that the page gave this tab; it must be right even if another tab is the leader. */
  readonly key: FileKey | null;
}

/** Rows, and the tables that they were read from. */
export interface ReadResult {
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

/** The parameters and the result of each call. */
export interface RpcMethods {
  prepare: [PrepareParams, void];
  run: [SqlStatement, PackedRows];
  runMany: [{ sql: string; parameters: readonly (readonly SqlValue[])[] }, number];
  read: [SqlStatement, ReadResult];
  /** Answers when the transaction is open; the call's number becomes the transaction's id. */
  begin: [void, void];
  runIn: [SqlStatement & { transaction: number }, PackedRows];
  runManyIn: [
    { sql: string; parameters: readonly (readonly SqlValue[])[]; transaction: number },
    number,
  ];
  commit: [{ transaction: number }, void];
  rollback: [{ transaction: number }, void];
  track: [{ tables: readonly string[] }, void];
  sync: [void, SyncReport];
  signUp: [SignUpOptions & { server: string }, void];
  signIn: [SignInOptions & { server: string }, void];
  signOut: [void, void];
  changePassword: [ChangePasswordOptions, void];
  devices: [void, DeviceInfo[]];
  revokeDevice: [{ deviceId: string }, void];
  recoveryPhrase: [void, string | undefined];
  createRecoveryPhrase: [void, string];
  confirmNewAccount: [void, void];
  enterRecoveryPhrase: [{ words: string }, void];
  edit: [CellEdit, EditOutcome];
  history: [{ table: string; key: readonly SqlValue[] }, HistoryEntry[]];
  recordHistory: [void, void];
  deletedRows: [{ table: string; limit: number }, DeletedRow[]];
  hiddenRows: [void, HiddenRow[]];
  resolveHiddenRow: [{ id: string; column: string; value: string }, void];
  mergeHiddenRow: [{ id: string }, void];
  deleteHiddenRow: [{ id: string }, void];
  conflicts: [void, Conflict[]];
  restoreLostEdit: [{ conflictId: string }, void];
  dismissLostEdit: [{ conflictId: string }, void];
  syncStatus: [void, SyncStatus];
  export: [void, Uint8Array];
  import: [{ file: Uint8Array }, void];
  rekey: [KeyChange, void];
}

export type RpcMethodName = keyof RpcMethods;
export type RpcParams<K extends RpcMethodName> = RpcMethods[K][0];
export type RpcResult<K extends RpcMethodName> = RpcMethods[K][1];

interface RpcPolicy {
  readonly onLeaderChange: "retry" | "reject";
  /** The time that the tab waits for the answer. */
  readonly timeoutMs: number;
}

/** The longest wait for a statement and the statements queued before it. */
const STATEMENT_WAIT_MS_MAX = 120_000;
/** The longest wait for one or two requests, each with the time-out of the transport. */
const REQUEST_WAIT_MS_MAX = 120_000;
/** The longest wait for the first sync of a large account on a slow connection. */
const SYNC_WAIT_MS_MAX = 3_600_000;

const STATEMENT: RpcPolicy = { onLeaderChange: "retry", timeoutMs: STATEMENT_WAIT_MS_MAX };
const IN_TRANSACTION: RpcPolicy = { onLeaderChange: "reject", timeoutMs: STATEMENT_WAIT_MS_MAX };
const REQUEST: RpcPolicy = { onLeaderChange: "retry", timeoutMs: REQUEST_WAIT_MS_MAX };
/** The policy of calls whose second execution would do something different from the first. */
const ONCE: RpcPolicy = { onLeaderChange: "reject", timeoutMs: REQUEST_WAIT_MS_MAX };

export const RPC_POLICIES: { readonly [K in RpcMethodName]: RpcPolicy } = {
  prepare: STATEMENT,
  run: STATEMENT,
  runMany: STATEMENT,
  read: STATEMENT,
  begin: STATEMENT,
  runIn: IN_TRANSACTION,
  runManyIn: IN_TRANSACTION,
  // The idempotency table records whether the transaction was committed.
  commit: STATEMENT,
  rollback: STATEMENT,
  track: STATEMENT,
  sync: { onLeaderChange: "retry", timeoutMs: SYNC_WAIT_MS_MAX },
  signUp: ONCE,
  signIn: REQUEST,
  signOut: REQUEST,
  changePassword: ONCE,
  devices: REQUEST,
  revokeDevice: REQUEST,
  recoveryPhrase: STATEMENT,
  createRecoveryPhrase: ONCE,
  confirmNewAccount: STATEMENT,
  enterRecoveryPhrase: STATEMENT,
  // Done twice, the second edit finds the value that the first one wrote.
  edit: STATEMENT,
  history: STATEMENT,
  recordHistory: STATEMENT,
  deletedRows: STATEMENT,
  hiddenRows: STATEMENT,
  resolveHiddenRow: STATEMENT,
  mergeHiddenRow: STATEMENT,
  deleteHiddenRow: STATEMENT,
  conflicts: STATEMENT,
  restoreLostEdit: STATEMENT,
  dismissLostEdit: STATEMENT,
  syncStatus: REQUEST,
  export: STATEMENT,
  import: ONCE,
  rekey: ONCE,
};
