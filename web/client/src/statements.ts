/**
 * Runs the tabs' statements on the one connection.
 *
 * Invariants:
 * - A call's statements are one transaction, together with its note in the ledger.
 * - While a tab's transaction is open nobody else's statement runs, and no sync.
 * - However a call ends, no transaction of its own stays open.
 */
import type { Clock } from "./clock.js";
import type { Given } from "./calls.js";
import type { PackedRows, Replica } from "./engine.js";
import { failure } from "./errors.js";
import { lane } from "./lane.js";
import { changesOnly, ledger } from "./ledger.js";
import type { Call, CallOf } from "./messages.js";
import { kindOf } from "./statement.js";

/** Calls that wait for their turn; each tab has a smaller bound of its own. */
const CALLS_WAITING_MAX = 50_000;
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
  readonly replica: Replica;
  readonly clock: Clock;
  /** Waits until no sync runs, and keeps others from beginning; what comes back ends that. */
  holdSyncs(): Promise<() => void>;
  isAlive(tab: string): boolean;
  /** Something may have been written. */
  wrote(): void;
}

export function statements(parts: StatementsParts): Statements {
  const { replica, clock } = parts;
  const turns = lane(CALLS_WAITING_MAX);
  let notes = ledger(replica);
  let open: Transaction | undefined;

  const control = (sql: "BEGIN IMMEDIATE" | "COMMIT" | "ROLLBACK"): void => {
    replica.run(sql, []);
  };
  const rollBack = (): void => {
    if (replica.inTransaction()) {
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
      if (!replica.inTransaction()) {
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
    const run = (): PackedRows => replica.run(sql, parameters);
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
      replica.takeChanged();
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
    if (!replica.inTransaction()) {
      end();
      throw failure("transaction_ended", "SQLite has rolled the transaction back");
    }
    restartTimer(open);
    return open;
  }

  return {
    run: (call) => inTurn(call.tab, () => outside(call)),
    runMany: (call) =>
      inTurn(call.tab, () => once(call, () => changesOnly(many(replica, call.given))).changes),
    async begin({ tab, number }) {
      const freeSyncs = await parts.holdSyncs();
      const free = (): void => {
        freeTurn();
        freeSyncs();
      };
      let freeTurn = (): void => undefined;
      try {
        freeTurn = turns.takeNow() ?? (await turns.take());
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
      return replica.run(given.sql, given.parameters);
    },
    runManyIn({ tab, given }) {
      mine(tab, given.transaction);
      return many(replica, given);
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
      notes = ledger(replica);
    },
  };
}

function many(replica: Replica, given: Given<"runMany">): number {
  if (kindOf(given.sql) === "controls") {
    throw failure("use_transaction", "executeMany has a transaction already");
  }
  return replica.runMany(given.sql, given.parameters);
}
