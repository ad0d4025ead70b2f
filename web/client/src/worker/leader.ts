/**
 * The leader's side: takes the tabs' calls, answers them, tells all tabs what changed and how the
 * database stands, and notices when a tab is gone.
 *
 * Invariant: an answer is said only after what it answers for is committed.
 */
import type { ErrorInfo, SyncProgress, SyncState } from "../api.js";
import { createRpcHandlers } from "./rpc-handlers.js";
import type { RpcResult, RpcMethodName } from "../shared/rpc-methods.js";
import type { TimeSource } from "../shared/time-source.js";
import type { ReplicaFile } from "./file/replica-file.js";
import { toErrorInfo, isTrap } from "../shared/errors.js";
import { withLock, createMutex, withManualLock } from "./mutex.js";
import { VERSION } from "../shared/tab-messages.js";
import type {
  RpcCall,
  LeaderStatus,
  BroadcastMessage,
  LeaderMessage,
  TabMessage,
} from "../shared/tab-messages.js";
import { reaching } from "./sync/origins.js";
import { transfersOf } from "../shared/packed-rows.js";
import { explainStorageError } from "./file/quota-probe.js";
import { readStatus, type ReplicaFileStatus } from "./file/file-status.js";
import { openIdempotencyTable } from "./idempotency-table.js";
import { StatementRunner, type StatementRunnerDeps } from "./statement-runner.js";
import { TabTransactions } from "./tab-transactions.js";
import { SyncScheduler } from "./sync/sync-scheduler.js";

/** Calls that wait for their turn; each tab has a smaller bound of its own. */
const CALLS_WAITING_MAX = 50_000;
/** How often, at most, all tabs are told how far a sync is. */
const PROGRESS_MS_MIN = 50;
/** Until the file is asked how it stands after a change; many changes come in a row. */
const STATUS_REFRESH_MS = 50;

export interface LeaderDeps {
  readonly file: ReplicaFile;
  /** Its worker's name. */
  readonly id: string;
  readonly storage: LeaderStatus["storage"];
  readonly warning?: string;
  readonly clock: TimeSource;
  sendToTab(tab: string, message: TabMessage, transfer: readonly ArrayBuffer[]): void;
  broadcast(message: BroadcastMessage): void;
  /** Calls when the tab is gone. */
  onTabGone(tab: string, onGone: () => void): void;
  /** The wasm module is not to be trusted any more. */
  broken(error: ErrorInfo): void;
}

export interface Leader {
  handleMessage(message: LeaderMessage): void;
  /** Says who it is, and how the database stands. */
  announce(): void;
  online(): void;
  /** These tabs live; what was noted for others goes. */
  keepResultsOf(tabs: readonly string[]): void;
  /** Rolls back what is open, and ends the syncs; the file may be closed then. */
  stop(): Promise<void>;
}

export function createLeader(parts: LeaderDeps): Leader {
  const { file, clock, id } = parts;
  const tabs = new Map<string, Map<number, AbortController>>();
  let isBroken = false;
  let hasStopped = false;
  const standing = createStatusPublisher(parts);
  const turns = createMutex(CALLS_WAITING_MAX);

  const sync = new SyncScheduler({
    clock,
    async sync(onProgress, signal) {
      const tell = (progress: SyncProgress): void => {
        publishChanges();
        onProgress(progress);
      };
      try {
        const synced = withLock(turns, (mine) => file.sync(tell, signal, mine));
        const report = await reaching(standing.read().published.account?.server, synced);
        standing.addLost(report.lost);
        return report;
      } catch (thrown) {
        noticeTrap(thrown);
        throw thrown;
      }
    },
    listen: (onState, signal) =>
      withManualLock(turns, (mine) => file.listen(onState, signal, mine)),
    standing: () => standing.read().syncState,
    setState: (state) => standing.setSync(state),
    synced() {
      publishChanges();
      standing.refresh();
    },
  });

  const results = openIdempotencyTable(file);
  const shared: StatementRunnerDeps = {
    file,
    results,
    turns,
    isAlive: (tab) => tabs.has(tab),
    wrote: () => {
      if (publishChanges()) {
        scheduleStatusRefresh();
      }
    },
  };
  const statements = new StatementRunner(shared);
  const transactions = new TabTransactions({ ...shared, clock });

  const calls = createRpcHandlers({
    file,
    turns,
    results,
    statements,
    transactions,
    syncing: sync,
    refreshStatus: () => standing.refresh(),
    allTablesChanged: () => {
      publishChanges();
      scheduleStatusRefresh();
    },
    rekeyed: (key) => parts.broadcast({ kind: "rekeyed", key }),
    progress: (tab, number, progress) => {
      parts.sendToTab(tab, { kind: "progress", from: id, number, progress }, []);
    },
  });

  /** Tells which tables were written to, if any. */
  function publishChanges(): boolean {
    const changed = file.takeChangedTables();
    if (changed.length > 0) {
      parts.broadcast({ kind: "changed", tables: changed });
    }
    return changed.length > 0;
  }

  let cancelRefresh: (() => void) | undefined;
  function scheduleStatusRefresh(): void {
    cancelRefresh ??= clock.after(STATUS_REFRESH_MS, () => {
      cancelRefresh = undefined;
      guarded(() => {
        standing.refresh();
        sync.changed();
      });
    });
  }

  function guarded(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      noticeTrap(thrown);
    }
  }

  function noticeTrap(thrown: unknown): boolean {
    if (isTrap(thrown) && !isBroken) {
      isBroken = true;
      parts.broken(toErrorInfo(thrown));
    }
    return isBroken;
  }

  function callsOf(tab: string): Map<number, AbortController> {
    const known = tabs.get(tab);
    if (known !== undefined) {
      return known;
    }
    const calls = new Map<number, AbortController>();
    tabs.set(tab, calls);
    parts.onTabGone(tab, () => forget(tab));
    return calls;
  }

  function forget(tab: string): void {
    tabs.get(tab)?.forEach((call) => call.abort());
    tabs.delete(tab);
    guarded(() => transactions.rollBackTab(tab));
  }

  async function answer(call: RpcCall, underWay: Map<number, AbortController>): Promise<void> {
    const cancel = new AbortController();
    underWay.set(call.number, cancel);
    try {
      const value = await dispatch(call, cancel.signal);
      const message: TabMessage = { kind: "answer", from: id, number: call.number, value };
      parts.sendToTab(call.tab, message, transfersOf(value));
    } catch (thrown) {
      // What a broken leader, or one that has stopped, did not answer, the next one is asked.
      if (!noticeTrap(thrown) && !hasStopped) {
        const error = await explainStorageError(thrown);
        parts.sendToTab(call.tab, { kind: "error", from: id, number: call.number, error }, []);
      }
    } finally {
      underWay.delete(call.number);
    }
  }

  function dispatch<K extends RpcMethodName>(
    call: RpcCall,
    signal: AbortSignal,
  ): RpcResult<RpcMethodName> | Promise<RpcResult<RpcMethodName>> {
    type RpcHandler = (call: RpcCall, signal: AbortSignal) => RpcResult<K> | Promise<RpcResult<K>>;
    // The table has for each name a function of that name's calls.
    return (calls[call.name] as RpcHandler)(call, signal);
  }

  return {
    handleMessage(message) {
      if (isBroken || hasStopped) {
        // The next leader is asked.
        return;
      }
      const underWay = callsOf(message.tab);
      if (message.kind === "cancel") {
        underWay.get(message.number)?.abort();
      } else if (!underWay.has(message.number)) {
        void answer(message, underWay);
      }
    },
    announce() {
      parts.broadcast({ kind: "owner", owner: id, version: VERSION });
      standing.tell();
    },
    online: () => sync.online(),
    keepResultsOf: (living) => results.removeOtherTabs(living),
    async stop() {
      hasStopped = true;
      cancelRefresh?.();
      if (isBroken) {
        return;
      }
      transactions.rollBackTab();
      await sync.stop();
    },
  };
}

interface StatusPublisher {
  read(): ReplicaFileStatus;
  refresh(): void;
  setSync(state: SyncState): void;
  addLost(count: number): void;
  tell(): void;
}

/** What the file said last of how it stands, and what the tabs were told of it. */
function createStatusPublisher(parts: LeaderDeps): StatusPublisher {
  const { file, clock, id, storage, warning } = parts;
  let read = readStatus(file);
  let sync: SyncState = { phase: "local" };
  let lost = 0;
  let told = "";
  let toldMs = 0;

  function status(): LeaderStatus {
    return {
      storage,
      ...(warning === undefined ? {} : { warning }),
      ...read.published,
      lost,
      sync,
    };
  }

  function tell(): void {
    const now = status();
    told = JSON.stringify(now);
    toldMs = clock.now();
    parts.broadcast({ kind: "status", owner: id, status: now });
  }

  function tellChange(): void {
    if (JSON.stringify(status()) !== told) {
      tell();
    }
  }

  return {
    read: () => read,
    refresh() {
      read = readStatus(file);
      tellChange();
    },
    setSync(state) {
      const isProgress = state.phase === "syncing" && sync.phase === "syncing";
      sync = state;
      if (!isProgress || clock.now() - toldMs >= PROGRESS_MS_MIN) {
        tellChange();
      }
    },
    addLost(count) {
      lost += count;
    },
    tell,
  };
}
