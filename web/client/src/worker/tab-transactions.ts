/**
 * The transactions that tabs hold open over several calls.
 *
 * Invariants:
 * - An open transaction has the connection: no other statement runs, and no part of a sync. So
 *   there is one at a time.
 * - However it ends, its timer stops and the connection is free again.
 * - A commit is recorded in the idempotency table, in the transaction itself.
 */
import { WarrenError } from "../api.js";
import type { RpcCallOf } from "../shared/tab-messages.js";
import type { TimeSource } from "../shared/time-source.js";
import type { PackedRows } from "../shared/wasm-engine.js";
import { rowlessResult } from "./idempotency-table.js";
import { statementKind } from "./statement-kind.js";
import { rollBackIfOpen, runBatch, type StatementRunnerDeps } from "./statement-runner.js";

/** The time without a statement after which a transaction is rolled back. */
export const TRANSACTION_IDLE_MS_MAX = 30_000;

export interface TabTransactionsDeps extends StatementRunnerDeps {
  readonly clock: TimeSource;
}

interface TabTransaction {
  readonly tab: string;
  readonly number: number;
  readonly free: () => void;
  stopTimer: () => void;
}

export class TabTransactions {
  readonly #deps: TabTransactionsDeps;
  #open: TabTransaction | undefined;

  constructor(deps: TabTransactionsDeps) {
    this.#deps = deps;
  }

  async begin({ tab, number }: RpcCallOf<"begin">): Promise<void> {
    const { file, turns } = this.#deps;
    const free = turns.tryAcquire() ?? (await turns.acquire());
    try {
      if (!this.#deps.isAlive(tab)) {
        throw new WarrenError("cancelled", "the calling tab is gone");
      }
      file.run("BEGIN IMMEDIATE", []);
    } catch (thrown) {
      free();
      throw thrown;
    }
    this.#open = { tab, number, free, stopTimer: () => undefined };
    this.#restartTimer(this.#open);
  }

  runIn({ tab, params }: RpcCallOf<"runIn">): PackedRows {
    this.#continue(tab, params.transaction);
    if (statementKind(params.sql) === "controls") {
      const message = "db.transaction(…) commits and rolls back automatically";
      throw new WarrenError("transaction_required", message);
    }
    return this.#deps.file.run(params.sql, params.parameters);
  }

  runManyIn({ tab, params }: RpcCallOf<"runManyIn">): number {
    this.#continue(tab, params.transaction);
    return runBatch(this.#deps.file, params);
  }

  commit(call: RpcCallOf<"commit">): void {
    const { file, results } = this.#deps;
    if (call.retry && results.findResult(call) !== undefined) {
      return;
    }
    if (call.retry) {
      const message = "the leader tab is gone: the transaction was not committed";
      throw new WarrenError("leader_lost", message);
    }
    this.#continue(call.tab, call.params.transaction);
    try {
      results.recordResult(call, rowlessResult(0));
      file.run("COMMIT", []);
      this.#deps.wrote();
    } catch (thrown) {
      rollBackIfOpen(file);
      throw thrown;
    } finally {
      this.#end();
    }
  }

  rollback({ tab, params }: RpcCallOf<"rollback">): void {
    if (this.#open?.tab === tab && this.#open.number === params.transaction) {
      this.#rollBack();
    }
  }

  /** Rolls back the transaction of this tab; without a tab, that of any tab. */
  rollBackTab(tab?: string): void {
    if (this.#open !== undefined && (tab === undefined || this.#open.tab === tab)) {
      this.#rollBack();
    }
  }

  /** Throws unless this is the open transaction, and restarts its timer. */
  #continue(tab: string, number: number): void {
    const open = this.#open;
    if (open === undefined || open.tab !== tab || open.number !== number) {
      const limit = `${TRANSACTION_IDLE_MS_MAX / 1000} s without a statement`;
      const message =
        `the transaction is no longer open: transactions are rolled back after ${limit}`;
      throw new WarrenError("transaction_ended", message);
    }
    if (!this.#deps.file.inTransaction()) {
      this.#end();
      throw new WarrenError("transaction_ended", "SQLite rolled the transaction back");
    }
    this.#restartTimer(open);
  }

  #restartTimer(transaction: TabTransaction): void {
    transaction.stopTimer();
    transaction.stopTimer = this.#deps.clock.after(TRANSACTION_IDLE_MS_MAX, () => {
      if (this.#open === transaction) {
        this.#rollBack();
      }
    });
  }

  #rollBack(): void {
    const { file } = this.#deps;
    try {
      rollBackIfOpen(file);
      // Writes that were rolled back are not changes.
      file.takeChangedTables();
    } finally {
      this.#end();
    }
  }

  #end(): void {
    this.#open?.stopTimer();
    this.#open?.free();
    this.#open = undefined;
  }
}
