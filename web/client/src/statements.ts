/**
 * Runs the tabs' statements on the one connection.
 *
 * Invariants:
 * - A call's statements are one transaction, together with its note in the ledger.
 * - While a tab's transaction is open nobody else's statement runs, and no part of a sync.
 * - However a call ends, no transaction of its own stays open.
 */
import type { Clock } from "./clock.js";
import type { Given } from "./calls.js";
import type { PackedRows } from "./engine.js";
import type { OpenFile } from "./file.js";
import { failure } from "./errors.js";
import type { Lane } from "./lane.js";
import { changesOnly, ledger } from "./ledger.js";
import type { Call, CallOf } from "./messages.js";
import { kindOf } from "./statement.js";

/** A transaction whose tab says nothing for so long is rolled back. */
export const TRANSACTION_IDLE_MS_MAX = 30_000;

interface Transaction {
  readonly tab: string;
  readonly number: number;
  readonly free: () => void;
  stopTimer: () => void;
}

export interface Statements {
  run(call: CallOf<"run">): Promise<PackedRows>;
  runMany(call: CallOf<"runMany">): Promise<number>;
  begin(call: CallOf<"begin">): Promise<void>;
  runIn(call: CallOf<"runIn">): PackedRows;
  runManyIn(call: CallOf<"runManyIn">): number;
  commit(call: CallOf<"commit">): void;
  rollback(call: CallOf<"rollback">): void;
  /** Runs what needs the file for itself for a moment. */
  alone<T>(work: () => T): Promise<T>;
  /** Rolls back what these have begun; without a name, whoever it was. */
  abandon(tab?: string): void;
  keepNotesOf(tabs: readonly string[]): void;
  /** After the file was replaced. */
  renew(): void;
}

export interface StatementsParts {
  readonly file: OpenFile;
  readonly clock: Clock;
  readonly turns: Lane;
  isAlive(tab: string): boolean;
  /** Something may have been written. */
  wrote(): void;
}

export function statements(parts: StatementsParts): Statements {
  const { file, clock, turns } = parts;
  let notes = ledger(file);
  let open: Transaction | undefined;

  const control = (sql: "BEGIN IMMEDIATE" | "COMMIT" | "ROLLBACK"): void => {
    file.run(sql, []);
  };
  const rollBack = (): void => {
    if (file.inTransaction()) {
      control("ROLLBACK");
    }
  };

  async function inTurn<T>(tab: string, work: () => T): Promise<T> {
    const free = turns.takeNow() ?? (await turns.take());
    try {
      if (!parts.isAlive(tab)) {
        throw failure("aborted", "its tab is gone");
      }
      return work();
    } finally {
      free();
    }
  }

  /** Does the work once, in a transaction with its note. */
  function once(call: Call, work: () => PackedRows): PackedRows {
    const before = call.again ? notes.find(call) : undefined;
    if (before !== undefined) {
      return before;
    }
    control("BEGIN IMMEDIATE");
    try {
      const answer = work();
      if (!file.inTransaction()) {
        throw failure("use_transaction", "it ended the transaction that it ran in");
      }
      notes.note(call, answer);
      control("COMMIT");
      parts.wrote();
      return answer;
    } finally {
      rollBack();
    }
  }

  function outside(call: CallOf<"run">): PackedRows {
    const { sql, parameters } = call.given;
    const run = (): PackedRows => file.run(sql, parameters);
    const kind = kindOf(sql);
    switch (kind) {
      case "writes":
        return once(call, run);
      case "controls":
      case "savepoint":
        throw failure("use_transaction", "transactions are begun with db.transaction(…)");
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

  function giveUp(): void {
    try {
      rollBack();
      // What was written and rolled back is no change.
      file.takeChanged();
    } finally {
      end();
    }
  }

  function restartTimer(transaction: Transaction): void {
    transaction.stopTimer();
    transaction.stopTimer = clock.after(TRANSACTION_IDLE_MS_MAX, () => {
      if (open === transaction) {
        giveUp();
      }
    });
  }

  /** The tab's transaction, if it is still open. */
  function mine(tab: string, number: number): Transaction {
    if (open === undefined || open.tab !== tab || open.number !== number) {
      const limit = `${TRANSACTION_IDLE_MS_MAX / 1000} s without a statement`;
      throw failure("transaction_ended", `the transaction was rolled back (after ${limit})`);
    }
    if (!file.inTransaction()) {
      end();
      throw failure("transaction_ended", "SQLite has rolled the transaction back");
    }
    restartTimer(open);
    return open;
  }

  return {
    run: (call) => inTurn(call.tab, () => outside(call)),
    runMany: (call) =>
      inTurn(call.tab, () => once(call, () => changesOnly(many(file, call.given))).changes),
    async begin({ tab, number }) {
      const free = turns.takeNow() ?? (await turns.take());
      try {
        if (!parts.isAlive(tab)) {
          throw failure("aborted", "its tab is gone");
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
      mine(tab, given.transaction);
      if (kindOf(given.sql) === "controls") {
        throw failure("use_transaction", "db.transaction(…) commits and rolls back by itself");
      }
      return file.run(given.sql, given.parameters);
    },
    runManyIn({ tab, given }) {
      mine(tab, given.transaction);
      return many(file, given);
    },
    commit(call) {
      if (call.again && notes.find(call) !== undefined) {
        return;
      }
      if (call.again) {
        throw failure("owner_lost", "the transaction went with the tab that held the file");
      }
      mine(call.tab, call.given.transaction);
      try {
        notes.note(call, changesOnly(0));
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
        giveUp();
      }
    },
    async alone(work) {
      const free = turns.takeNow() ?? (await turns.take());
      try {
        return work();
      } finally {
        free();
      }
    },
    abandon(tab) {
      if (open !== undefined && (tab === undefined || open.tab === tab)) {
        giveUp();
      }
    },
    keepNotesOf: (tabs) => notes.keepOnly(tabs),
    renew() {
      notes = ledger(file);
    },
  };
}

function many(file: OpenFile, given: Given<"runMany">): number {
  if (kindOf(given.sql) === "controls") {
    throw failure("use_transaction", "executeMany has a transaction already");
  }
  return file.runMany(given.sql, given.parameters);
}
