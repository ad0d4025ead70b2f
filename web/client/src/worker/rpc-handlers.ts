/** The leader's handlers: one function for each call. */
import {
  changePassword,
  listDevices,
  createAccount,
  revokeDevice,
  type ServerAccess,
} from "./sync/account-api.js";
import { WarrenError, type FileKey, type SyncProgress } from "../api.js";
import type { RpcResult, RpcMethodName } from "../shared/rpc-methods.js";
import { toErrorInfo } from "../shared/errors.js";
import type { ReplicaFile } from "./file/replica-file.js";
import { withLock, type Mutex } from "./mutex.js";
import type { RpcCallOf } from "../shared/tab-messages.js";
import { reaching } from "./sync/origins.js";
import { migrateAndTrack } from "./migrations.js";
import { readStatus } from "./file/file-status.js";
import type { IdempotencyTable } from "./idempotency-table.js";
import type { StatementRunner } from "./statement-runner.js";
import type { TabTransactions } from "./tab-transactions.js";
import type { SyncScheduler } from "./sync/sync-scheduler.js";

export interface RpcHandlersDeps {
  readonly file: ReplicaFile;
  readonly turns: Mutex;
  readonly results: IdempotencyTable;
  readonly statements: StatementRunner;
  readonly transactions: TabTransactions;
  readonly syncing: SyncScheduler;
  /** Called when the status of the file may have changed. */
  refreshStatus(): void;
  /** Called when any table may have changed. */
  allTablesChanged(): void;
  /** Called after a change of the key, of which all tabs must be notified. */
  rekeyed(key: FileKey | null): void;
  progress(tab: string, number: number, progress: SyncProgress): void;
}

export type RpcHandlers = {
  readonly [K in RpcMethodName]: (
    call: RpcCallOf<K>,
    signal: AbortSignal,
  ) => RpcResult<K> | Promise<RpcResult<K>>;
};

export function createRpcHandlers(parts: RpcHandlersDeps): RpcHandlers {
  return {
    ...sqlHandlers(parts),
    ...accountHandlers(parts),
    ...changeHandlers(parts),
    ...fileHandlers(parts),
  };
}

type SqlMethodName =
  | "prepare"
  | "track"
  | "read"
  | "run"
  | "runMany"
  | "begin"
  | "runIn"
  | "runManyIn"
  | "commit"
  | "rollback";

function sqlHandlers(parts: RpcHandlersDeps): Pick<RpcHandlers, SqlMethodName> {
  const { file, statements, transactions, syncing } = parts;
  return {
    run: (call) => statements.run(call),
    runMany: (call) => statements.runMany(call),
    begin: (call) => transactions.begin(call),
    runIn: (call) => transactions.runIn(call),
    runManyIn: (call) => transactions.runManyIn(call),
    commit: (call) => transactions.commit(call),
    rollback: (call) => transactions.rollback(call),
    async read(call) {
      const packed = await statements.run({ ...call, method: "run" });
      return { packed, tables: file.tablesRead(call.params.sql) };
    },
    async prepare({ params }) {
      await statements.exclusive(() => migrateAndTrack(file, params));
      parts.allTablesChanged();
      parts.refreshStatus();
      syncing.start(params.autoSync);
    },
    async track({ params }) {
      await statements.exclusive(() => file.track(params.tables));
      parts.allTablesChanged();
    },
  };
}

type AccountMethodName =
  | "sync"
  | "signUp"
  | "signIn"
  | "signOut"
  | "changePassword"
  | "devices"
  | "revokeDevice"
  | "syncStatus";

function accountHandlers(parts: RpcHandlersDeps): Pick<RpcHandlers, AccountMethodName> {
  const { file, turns, syncing, refreshStatus } = parts;
  const signIn = async (
    { params, retry }: RpcCallOf<"signIn"> | RpcCallOf<"signUp">,
    isNew: boolean,
  ): Promise<void> => {
    const { server, allowPlaintext = false, ...credentials } = params;
    await syncing.exclusively(async () => {
      const { account } = readStatus(file).published;
      if (retry && account?.server === server && account.login === credentials.login) {
        return;
      }
      const registration = { ...credentials, isNew: isNew || allowPlaintext };
      const signedIn = withLock(turns, (mine) => file.signIn(registration, server, mine));
      await reaching(server, signedIn);
      refreshStatus();
    });
    syncing.resume();
  };
  return {
    sync: ({ tab, number }, signal) =>
      syncing.sync((now) => parts.progress(tab, number, now), signal),
    async signUp(call) {
      const { server, login, password, endToEndEncrypted } = call.params;
      await parts.statements.exclusive(() => file.checkAccount(server, login));
      await createAccount(server, login, password);
      if (endToEndEncrypted === true) {
        // The phrase must exist before the first sync, which starts after signing in.
        await parts.statements.exclusive(() => {
          // Another tab may have signed in to another account in the meantime.
          file.checkAccount(server, login);
          if (file.recoveryPhrase() === undefined) file.createRecoveryPhrase();
        });
      }
      await signIn(call, true);
    },
    signIn: (call) => signIn(call, false),
    signOut: () =>
      syncing.preemptSync(async () => {
        await forgetDevice(file);
        await parts.statements.exclusive(() => file.signOut());
        refreshStatus();
        syncing.signedOut();
      }),
    changePassword: async ({ params }) => {
      const { login, ...remote } = requireAccount(file);
      await changePassword(remote, { login, ...params });
    },
    devices: () => listDevices(requireAccount(file)),
    revokeDevice: ({ params }) => revokeDevice(requireAccount(file), params.deviceId),
    syncStatus: () => withLock(turns, (mine) => file.syncStatus(mine)),
  };
}

type FileMethodName =
  | "recoveryPhrase"
  | "createRecoveryPhrase"
  | "enterRecoveryPhrase"
  | "confirmNewAccount"
  | "export"
  | "import"
  | "rekey";

function fileHandlers(parts: RpcHandlersDeps): Pick<RpcHandlers, FileMethodName> {
  const { file, statements, syncing } = parts;
  const withPhrase = async <T>(give: () => T): Promise<T> => {
    const result = await statements.exclusive(give);
    parts.refreshStatus();
    syncing.resume();
    return result;
  };
  return {
    recoveryPhrase: () => statements.exclusive(() => file.recoveryPhrase()),
    createRecoveryPhrase: () => withPhrase(() => file.createRecoveryPhrase()),
    confirmNewAccount: () => withPhrase(() => file.confirmNewAccount()),
    enterRecoveryPhrase: ({ params }) => withPhrase(() => file.enterRecoveryPhrase(params.words)),
    export: () => syncing.preemptSync(() => statements.exclusive(() => file.export())),
    async import({ params }) {
      await syncing.preemptSync(() =>
        statements.exclusive(() => {
          file.import(params.file);
          parts.results.createIfMissing();
        }),
      );
      parts.allTablesChanged();
      parts.refreshStatus();
      syncing.resume();
    },
    async rekey({ params: { from, to } }) {
      await syncing.preemptSync(() =>
        statements.exclusive(() => {
          file.rekey(from ?? undefined, to ?? undefined);
          // Sent before any worker may have to open the file again.
          parts.rekeyed(to);
        }),
      );
      parts.refreshStatus();
    },
  };
}

type ChangeMethod =
  | "edit"
  | "history"
  | "recordHistory"
  | "deletedRows"
  | "conflicts"
  | "restoreLostEdit"
  | "dismissLostEdit"
  | "hiddenRows"
  | "resolveHiddenRow"
  | "mergeHiddenRow"
  | "deleteHiddenRow";

function changeHandlers(parts: RpcHandlersDeps): Pick<RpcHandlers, ChangeMethod> {
  const { file, statements } = parts;
  /** Runs a change that, if this is a retry, another leader may have done already. */
  const once = (retry: boolean, settle: () => void): Promise<void> =>
    statements.exclusive(() => {
      try {
        settle();
      } catch (thrown) {
        // A conflict that another leader has settled no longer exists.
        if (!retry || toErrorInfo(thrown).code !== "conflict_not_found") {
          throw thrown;
        }
      }
      parts.allTablesChanged();
    });
  return {
    edit: ({ params }) =>
      statements.exclusive(() => {
        const outcome = file.edit(params);
        parts.allTablesChanged();
        return outcome;
      }),
    history: ({ params }) => statements.exclusive(() => file.history(params.table, params.key)),
    recordHistory: () => statements.exclusive(() => file.recordHistory()),
    deletedRows: ({ params }) =>
      statements.exclusive(() => file.deletedRows(params.table, params.limit)),
    conflicts: () => statements.exclusive(() => file.conflicts()),
    restoreLostEdit: ({ params: { conflictId }, retry }) =>
      once(retry, () => file.restoreLostEdit(conflictId)),
    dismissLostEdit: ({ params: { conflictId }, retry }) =>
      once(retry, () => file.dismissLostEdit(conflictId)),
    hiddenRows: () => statements.exclusive(() => file.hiddenRows()),
    resolveHiddenRow: ({ params: { id, column, value }, retry }) =>
      once(retry, () => file.resolveHiddenRow(id, column, value)),
    mergeHiddenRow: ({ params, retry }) => once(retry, () => file.mergeHiddenRow(params.id)),
    deleteHiddenRow: ({ params, retry }) => once(retry, () => file.deleteHiddenRow(params.id)),
  };
}

/** Revokes the registration on the server, too, if it can be reached. */
async function forgetDevice(file: ReplicaFile): Promise<void> {
  if (file.token() === undefined) {
    return;
  }
  try {
    const devices = await listDevices(requireAccount(file));
    const current = devices.find((device) => device.isCurrent);
    if (current !== undefined) {
      await revokeDevice(requireAccount(file), current.id);
    }
  } catch {
    // Signing out works offline. The token is forgotten here; others can revoke the device.
  }
}

function requireAccount(file: ReplicaFile): Required<ServerAccess> & { readonly login: string } {
  const { account } = readStatus(file).published;
  const token = file.token();
  if (account === undefined || token === undefined) {
    throw new WarrenError("server_not_configured", "no account: sign up or sign in first");
  }
  return { ...account, token };
}
