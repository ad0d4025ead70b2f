/**
 * Runs the tabs' statements on the one connection, each call separately.
 *
 * Invariants:
 * - A call's statements are one transaction, together with its entry in the idempotency table.
 * - However a call ends, no transaction of its own stays open.
 *
 * Not here: statements in a tab's transaction → `tab-transactions.ts`.
 */
import { WarrenError } from "../api.js";
import type { RpcParams } from "../shared/rpc-methods.js";
import type { RpcCall, RpcCallOf } from "../shared/tab-messages.js";
import type { PackedRows } from "../shared/wasm-engine.js";
import type { ReplicaFile } from "./file/replica-file.js";
import { rowlessResult, type IdempotencyTable } from "./idempotency-table.js";
import type { Mutex } from "./mutex.js";
import { statementKind } from "./statement-kind.js";

export interface StatementRunnerDeps {
  readonly file: ReplicaFile;
  readonly results: IdempotencyTable;
  readonly turns: Mutex;
  isAlive(tab: string): boolean;
  /** Called when something may have been written. */
  wrote(): void;
}

export class StatementRunner {
  readonly #deps: StatementRunnerDeps;

  constructor(deps: StatementRunnerDeps) {
    this.#deps = deps;
  }

  run(call: RpcCallOf<"run">): Promise<PackedRows> {
    return this.#withConnection(call.tab, () => this.#runByKind(call));
  }

  runMany(call: RpcCallOf<"runMany">): Promise<number> {
    const runAll = (): PackedRows => rowlessResult(runBatch(this.#deps.file, call.params));
    return this.#withConnection(call.tab, () => this.#runIdempotent(call, runAll).changes);
  }

  /** Runs work that needs exclusive use of the file for a moment. */
  async exclusive<T>(work: () => T): Promise<T> {
    const { turns } = this.#deps;
    const free = turns.tryAcquire() ?? (await turns.acquire());
    try {
      return work();
    } finally {
      free();
    }
  }

  async #withConnection<T>(tab: string, work: () => T): Promise<T> {
    const { turns } = this.#deps;
    const free = turns.tryAcquire() ?? (await turns.acquire());
    try {
      if (!this.#deps.isAlive(tab)) {
        throw new WarrenError("cancelled", "the calling tab is gone");
      }
      return work();
    } finally {
      free();
    }
  }

  #runByKind(call: RpcCallOf<"run">): PackedRows {
    const { file } = this.#deps;
    const { sql, parameters } = call.params;
    const run = (): PackedRows => file.run(sql, parameters);
    const kind = statementKind(sql);
    switch (kind) {
      case "writes":
        return this.#runIdempotent(call, run);
      case "controls":
      case "savepoint":
        throw new WarrenError(
          "transaction_required",
          "use db.transaction(…) to begin a transaction",
        );
      case "reads":
      case "bare":
        try {
          return run();
        } finally {
          rollBackIfOpen(file);
          if (kind === "bare") {
            this.#deps.wrote();
          }
        }
    }
  }

  /** Does the work once, in a transaction with its entry in the idempotency table. */
  #runIdempotent(call: RpcCall, work: () => PackedRows): PackedRows {
    const { file, results } = this.#deps;
    const before = call.retry ? results.findResult(call) : undefined;
    if (before !== undefined) {
      return before;
    }
    file.run("BEGIN IMMEDIATE", []);
    try {
      const answer = work();
      if (!file.inTransaction()) {
        throw new WarrenError("transaction_required", "the statement ended its own transaction");
      }
      results.recordResult(call, answer);
      file.run("COMMIT", []);
      this.#deps.wrote();
      return answer;
    } finally {
      rollBackIfOpen(file);
    }
  }
}

/** Runs one statement for each list of parameters, in the transaction that is open. */
export function runBatch(file: ReplicaFile, params: RpcParams<"runMany">): number {
  if (statementKind(params.sql) === "controls") {
    throw new WarrenError("transaction_required", "executeMany already runs in a transaction");
  }
  return file.runMany(params.sql, params.parameters);
}

/** Rolls back, unless SQLite has already done so on its own. */
export function rollBackIfOpen(file: ReplicaFile): void {
  if (file.inTransaction()) {
    file.run("ROLLBACK", []);
  }
}
