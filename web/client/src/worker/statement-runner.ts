/**
 * Runs the tabs' statements on the one connection.
 *
 * Invariants:
 * - A call's statements are one transaction, together with its note in the idempotency table.
 * - While a tab's transaction is open nobody else's statement runs, and no part of a sync.
 * - However a call ends, no transaction of its own stays open.
 */
import type { TimeSource } from "../shared/time-source.js";
import type { RpcParams } from "../shared/rpc-methods.js";
import type { PackedRows } from "../shared/wasm-engine.js";
import type { ReplicaFile } from "./file/replica-file.js";
import { clientError } from "../shared/errors.js";
import type { Mutex } from "./mutex.js";
import { rowlessResult, openIdempotencyTable } from "./idempotency-table.js";
import type { RpcCall, RpcCallOf } from "../shared/tab-messages.js";
import { statementKind } from "./statement-kind.js";

/** A transaction whose tab says nothing for so long is rolled back. */
export const TRANSACTION_IDLE_MS_MAX = 30_000;

interface TabTransaction {
  readonly tab: string;
  readonly number: number;
  readonly free: () => void;
  stopTimer: () => void;
}

export interface StatementRunner {
  run(call: RpcCallOf<"run">): Promise<PackedRows>;
  runMany(call: RpcCallOf<"runMany">): Promise<number>;
  begin(call: RpcCallOf<"begin">): Promise<void>;
  runIn(call: RpcCallOf<"runIn">): PackedRows;
  runManyIn(call: RpcCallOf<"runManyIn">): number;
  commit(call: RpcCallOf<"commit">): void;
  rollback(call: RpcCallOf<"rollback">): void;
  /** Runs what needs the file for itself for a moment. */
  exclusive<T>(work: () => T): Promise<T>;
  /** Rolls back what these have begun; without a name, whoever it was. */
  rollBackTab(tab?: string): void;
  keepNotesOf(tabs: readonly string[]): void;
  /** After the file was replaced. */
  resetAfterImport(): void;
}

export interface StatementRunnerDeps {
  readonly file: ReplicaFile;
  readonly clock: TimeSource;
  readonly turns: Mutex;
  isAlive(tab: string): boolean;
  /** Something may have been written. */
  wrote(): void;
}

export function createStatementRunner(parts: StatementRunnerDeps): StatementRunner {
  const { file, clock, turns } = parts;
  let notes = openIdempotencyTable(file);
  let open: TabTransaction | undefined;

  const control = (sql: "BEGIN IMMEDIATE" | "COMMIT" | "ROLLBACK"): void => {
    file.run(sql, []);
  };
  const rollBack = (): void => {
    if (file.inTransaction()) {
      control("ROLLBACK");
    }
  };

  async function withConnection<T>(tab: string, work: () => T): Promise<T> {
    const free = turns.tryAcquire() ?? (await turns.acquire());
    try {
      if (!parts.isAlive(tab)) {
        throw clientError("aborted", "its tab is gone");
      }
      return work();
    } finally {
      free();
    }
  }

  /** Does the work once, in a transaction with its note. */
  function runIdempotent(call: RpcCall, work: () => PackedRows): PackedRows {
    const before = call.again ? notes.findResult(call) : undefined;
    if (before !== undefined) {
      return before;
    }
    control("BEGIN IMMEDIATE");
    try {
      const answer = work();
      if (!file.inTransaction()) {
        throw clientError("use_transaction", "it ended the transaction that it ran in");
      }
      notes.recordResult(call, answer);
      control("COMMIT");
      parts.wrote();
      return answer;
    } finally {
      rollBack();
    }
  }

  function runOutsideTransaction(call: RpcCallOf<"run">): PackedRows {
    const { sql, parameters } = call.given;
    const run = (): PackedRows => file.run(sql, parameters);
    const kind = statementKind(sql);
    switch (kind) {
      case "writes":
        return runIdempotent(call, run);
      case "controls":
      case "savepoint":
        throw clientError("use_transaction", "transactions are begun with db.transaction(…)");
      case "reads":
      case "bare":
        try {
          return run();
        } finally {
          rollBack();
          if (kind === "bare") {
            parts.wrote();
          }
        }
    }
  }

  function end(): void {
    open?.stopTimer();
    open?.free();
    open = undefined;
  }

  function rollBackOpen(): void {
    try {
      rollBack();
      // What was written and rolled back is no change.
      file.takeChangedTables();
    } finally {
      end();
    }
  }

  function restartTimer(transaction: TabTransaction): void {
    transaction.stopTimer();
    transaction.stopTimer = clock.after(TRANSACTION_IDLE_MS_MAX, () => {
      if (open === transaction) {
        rollBackOpen();
      }
    });
  }

  /** The tab's transaction, if it is still open. */
  function requireTransaction(tab: string, number: number): TabTransaction {
    if (open === undefined || open.tab !== tab || open.number !== number) {
      const limit = `${TRANSACTION_IDLE_MS_MAX / 1000} s without a statement`;
      throw clientError("transaction_ended", `the transaction was rolled back (after ${limit})`);
    }
    if (!file.inTransaction()) {
      end();
      throw clientError("transaction_ended", "SQLite has rolled the transaction back");
    }
    restartTimer(open);
    return open;
  }

  return {
    run: (call) => withConnection(call.tab, () => runOutsideTransaction(call)),
    runMany: (call) =>
      withConnection(
        call.tab,
        () => runIdempotent(call, () => rowlessResult(runBatch(file, call.given))).changes,
      ),
    async begin({ tab, number }) {
      const free = turns.tryAcquire() ?? (await turns.acquire());
      try {
        if (!parts.isAlive(tab)) {
          throw clientError("aborted", "its tab is gone");
        }
        control("BEGIN IMMEDIATE");
      } catch (thrown) {
        free();
        throw thrown;
      }
      open = { tab, number, free, stopTimer: () => undefined };
      restartTimer(open);
    },
    runIn({ tab, given }) {
      requireTransaction(tab, given.transaction);
      if (statementKind(given.sql) === "controls") {
        throw clientError("use_transaction", "db.transaction(…) commits and rolls back by itself");
      }
      return file.run(given.sql, given.parameters);
    },
    runManyIn({ tab, given }) {
      requireTransaction(tab, given.transaction);
      return runBatch(file, given);
    },
    commit(call) {
      if (call.again && notes.findResult(call) !== undefined) {
        return;
      }
      if (call.again) {
        throw clientError("owner_lost", "the transaction went with the tab that held the file");
      }
      requireTransaction(call.tab, call.given.transaction);
      try {
        notes.recordResult(call, rowlessResult(0));
        control("COMMIT");
        parts.wrote();
      } catch (thrown) {
        rollBack();
        throw thrown;
      } finally {
        end();
      }
    },
    rollback({ tab, given }) {
      if (open?.tab === tab && open.number === given.transaction) {
        rollBackOpen();
      }
    },
    async exclusive(work) {
      const free = turns.tryAcquire() ?? (await turns.acquire());
      try {
        return work();
      } finally {
        free();
      }
    },
    rollBackTab(tab) {
      if (open !== undefined && (tab === undefined || open.tab === tab)) {
        rollBackOpen();
      }
    },
    keepNotesOf: (tabs) => notes.removeOtherTabs(tabs),
    resetAfterImport() {
      notes = openIdempotencyTable(file);
    },
  };
}

function runBatch(file: ReplicaFile, given: RpcParams<"runMany">): number {
  if (statementKind(given.sql) === "controls") {
    throw clientError("use_transaction", "executeMany has a transaction already");
  }
  return file.runMany(given.sql, given.parameters);
}
