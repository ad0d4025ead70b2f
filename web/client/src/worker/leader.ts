/**
 * The leader takes the tabs' calls, answers them, announces changes to all tabs, and notices when
 * a tab is gone.
 *
 * Invariants:
 * - An answer is sent only after the write that it confirms is committed.
 * - Calls that a broken or stopped leader did not answer are sent to the next one.
 *
 * Not here: the work of each call → `rpc-handlers.ts`. The choice of the leader →
 * `leader-election.ts`.
 */
import type { ErrorInfo, SyncProgress, SyncReport } from "../api.js";
import { isTrap, toErrorInfo } from "../shared/errors.js";
import { transfersOf } from "../shared/packed-rows.js";
import type { RpcMethodName, RpcResult } from "../shared/rpc-methods.js";
import {
  VERSION,
  type LeaderMessage,
  type RpcCall,
  type TabMessage,
} from "../shared/tab-messages.js";
import { explainStorageError } from "./file/quota-probe.js";
import { openIdempotencyTable, type IdempotencyTable } from "./idempotency-table.js";
import { createMutex, withLock, withManualLock, type Mutex } from "./mutex.js";
import { createRpcHandlers, type RpcHandlers } from "./rpc-handlers.js";
import { StatementRunner, type StatementRunnerDeps } from "./statement-runner.js";
import { StatusPublisher, type StatusPublisherDeps } from "./status-publisher.js";
import { reaching } from "./sync/origins.js";
import { SyncScheduler } from "./sync/sync-scheduler.js";
import { TabTransactions } from "./tab-transactions.js";

/**
 * The maximum number of calls that wait for their turn; each tab has a smaller limit of its own.
 */
const CALLS_WAITING_MAX = 50_000;

export interface LeaderDeps extends StatusPublisherDeps {
  sendToTab(tab: string, message: TabMessage, transfer: readonly ArrayBuffer[]): void;
  /** Calls `onGone` when the tab is gone. */
  onTabGone(tab: string, onGone: () => void): void;
  /** Reports that the wasm module can no longer be trusted. */
  broken(error: ErrorInfo): void;
}

/** The pending calls of a tab, by their numbers. */
type CancelsByNumber = Map<number, AbortController>;

export class Leader {
  readonly #deps: LeaderDeps;
  readonly #status: StatusPublisher;
  readonly #sync: SyncScheduler;
  readonly #results: IdempotencyTable;
  readonly #transactions: TabTransactions;
  readonly #handlers: RpcHandlers;
  readonly #callsByTab = new Map<string, CancelsByNumber>();
  #isBroken = false;
  #hasStopped = false;

  constructor(deps: LeaderDeps) {
    this.#deps = deps;
    const { file, clock } = deps;
    const turns = createMutex(CALLS_WAITING_MAX);
    this.#status = new StatusPublisher(deps);
    this.#sync = this.#createScheduler(turns);
    this.#results = openIdempotencyTable(file);
    const runnerDeps: StatementRunnerDeps = {
      file,
      results: this.#results,
      turns,
      isAlive: (tab) => this.#callsByTab.has(tab),
      wrote: () => {
        if (this.#publishChanges()) {
          this.#scheduleStatusRefresh();
        }
      },
    };
    const statements = new StatementRunner(runnerDeps);
    this.#transactions = new TabTransactions({ ...runnerDeps, clock });
    this.#handlers = this.#createHandlers(statements, turns);
  }

  handleMessage(message: LeaderMessage): void {
    if (this.#isBroken || this.#hasStopped) {
      return;
    }
    const calls = this.#callsOf(message.tab);
    if (message.kind === "cancel") {
      calls.get(message.number)?.abort();
    } else if (!calls.has(message.number)) {
      void this.#answer(message, calls);
    }
  }

  /** Announces this leader, and the status of the database. */
  announce(): void {
    this.#deps.broadcast({ kind: "leader", leader: this.#deps.id, version: VERSION });
    this.#status.publish();
  }

  online(): void {
    this.#sync.online();
  }

  /** Deletes the recorded results of all tabs except these, which are alive. */
  keepResultsOf(tabs: readonly string[]): void {
    this.#results.removeOtherTabs(tabs);
  }

  /** Rolls back the open transaction, and ends the syncs; then the file may be closed. */
  async stop(): Promise<void> {
    this.#hasStopped = true;
    this.#status.cancelRefresh();
    if (this.#isBroken) {
      return;
    }
    this.#transactions.rollBackTab();
    await this.#sync.stop();
  }

  #createScheduler(turns: Mutex): SyncScheduler {
    const { file, clock } = this.#deps;
    return new SyncScheduler({
      clock,
      sync: (onProgress, signal) => this.#syncOnce(turns, onProgress, signal),
      listen: (onState, signal) =>
        withManualLock(turns, (mine) => file.listen(onState, signal, mine)),
      standing: () => this.#status.fileStatus.syncState,
      setState: (state) => this.#status.setSync(state),
      synced: () => {
        this.#publishChanges();
        this.#status.refresh();
      },
    });
  }

  #createHandlers(statements: StatementRunner, turns: Mutex): RpcHandlers {
    const { file, id } = this.#deps;
    return createRpcHandlers({
      file,
      turns,
      results: this.#results,
      statements,
      transactions: this.#transactions,
      syncing: this.#sync,
      refreshStatus: () => this.#status.refresh(),
      allTablesChanged: () => {
        this.#publishChanges();
        this.#scheduleStatusRefresh();
      },
      rekeyed: (key) => this.#deps.broadcast({ kind: "rekeyed", key }),
      progress: (tab, number, progress) => {
        this.#deps.sendToTab(tab, { kind: "progress", from: id, number, progress }, []);
      },
    });
  }

  async #syncOnce(
    turns: Mutex,
    onProgress: (progress: SyncProgress) => void,
    signal: AbortSignal,
  ): Promise<SyncReport> {
    const progressed = (progress: SyncProgress): void => {
      this.#publishChanges();
      onProgress(progress);
    };
    try {
      const synced = withLock(turns, (mine) => this.#deps.file.sync(progressed, signal, mine));
      const report = await reaching(this.#status.fileStatus.published.account?.server, synced);
      this.#status.addConflicts(report.conflictsCount);
      return report;
    } catch (thrown) {
      this.#noticeTrap(thrown);
      throw thrown;
    }
  }

  /** Announces which tables were written to; returns whether there are any. */
  #publishChanges(): boolean {
    const tables = this.#deps.file.takeChangedTables();
    if (tables.length > 0) {
      this.#deps.broadcast({ kind: "changed", tables });
    }
    return tables.length > 0;
  }

  #scheduleStatusRefresh(): void {
    this.#status.scheduleRefresh(() => {
      this.#guard(() => {
        this.#status.refresh();
        this.#sync.changed();
      });
    });
  }

  #callsOf(tab: string): CancelsByNumber {
    const known = this.#callsByTab.get(tab);
    if (known !== undefined) {
      return known;
    }
    const calls: CancelsByNumber = new Map();
    this.#callsByTab.set(tab, calls);
    this.#deps.onTabGone(tab, () => this.#forget(tab));
    return calls;
  }

  #forget(tab: string): void {
    this.#callsByTab.get(tab)?.forEach((call) => call.abort());
    this.#callsByTab.delete(tab);
    this.#guard(() => this.#transactions.rollBackTab(tab));
  }

  async #answer(call: RpcCall, calls: CancelsByNumber): Promise<void> {
    const { tab, number } = call;
    const from = this.#deps.id;
    const cancel = new AbortController();
    calls.set(number, cancel);
    try {
      const value = await dispatch(this.#handlers, call, cancel.signal);
      this.#deps.sendToTab(tab, { kind: "answer", from, number, value }, transfersOf(value));
    } catch (thrown) {
      if (!this.#noticeTrap(thrown) && !this.#hasStopped) {
        const error = await explainStorageError(thrown);
        this.#deps.sendToTab(tab, { kind: "error", from, number, error }, []);
      }
    } finally {
      calls.delete(number);
    }
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      this.#noticeTrap(thrown);
    }
  }

  /** Returns whether the leader is broken, by this error or an earlier one. */
  #noticeTrap(thrown: unknown): boolean {
    if (isTrap(thrown) && !this.#isBroken) {
      this.#isBroken = true;
      this.#deps.broken(toErrorInfo(thrown));
    }
    return this.#isBroken;
  }
}

function dispatch<K extends RpcMethodName>(
  handlers: RpcHandlers,
  call: RpcCall,
  signal: AbortSignal,
): RpcResult<RpcMethodName> | Promise<RpcResult<RpcMethodName>> {
  type RpcHandler = (call: RpcCall, signal: AbortSignal) => RpcResult<K> | Promise<RpcResult<K>>;
  // The table has, for each method, a function that accepts that method's calls.
  return (handlers[call.method] as RpcHandler)(call, signal);
}
