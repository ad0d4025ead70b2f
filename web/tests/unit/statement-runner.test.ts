/** Tests transactions that a tab holds open: their time limit, and what is left of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RpcMethodName, RpcParams } from "../../client/src/shared/rpc-methods.js";
import { openReplicaFile } from "../../client/src/worker/file/replica-file.js";
import { createMutex } from "../../client/src/worker/mutex.js";
import type { RpcCallOf } from "../../client/src/shared/tab-messages.js";
import { openIdempotencyTable } from "../../client/src/worker/idempotency-table.js";
import { StatementRunner } from "../../client/src/worker/statement-runner.js";
import {
  TRANSACTION_IDLE_MS_MAX,
  TabTransactions,
} from "../../client/src/worker/tab-transactions.js";
import { fakeClock, type FakeClock } from "./clock.js";
import { engine } from "./sqlite.js";

let number = 0;

function call<K extends RpcMethodName>(method: K, params: RpcParams<K>): RpcCallOf<K> {
  number += 1;
  return { kind: "call", tab: "tab", number, ackedUpTo: 0, retry: false, method, params };
}

interface StatementScene {
  readonly transactions: TabTransactions;
  readonly clock: FakeClock;
  readonly count: () => Promise<number>;
}

async function scene(): Promise<StatementScene> {
  const clock = fakeClock();
  const file = await openReplicaFile(engine(":memory:"), "plan", undefined, true);
  file.run("CREATE TABLE t (a)", []);
  const deps = {
    file,
    results: openIdempotencyTable(file),
    clock,
    turns: createMutex(10),
    isAlive: () => true,
    wrote: () => undefined,
  };
  const statements = new StatementRunner(deps);
  const transactions = new TabTransactions(deps);
  const read = call("run", { sql: "SELECT count(*) AS n FROM t", parameters: [] });
  return { transactions, clock, count: async () => (await statements.run(read)).numbers[0] ?? -1 };
}

const insert = (transaction: number): RpcCallOf<"runIn"> =>
  call("runIn", { sql: "INSERT INTO t VALUES (1)", parameters: [], transaction });

test("a transaction that is silent for too long is rolled back", async () => {
  const { transactions, clock, count } = await scene();
  const begin = call("begin", undefined);
  await transactions.begin(begin);
  transactions.runIn(insert(begin.number));
  const waiting = count();
  await clock.pass(TRANSACTION_IDLE_MS_MAX - 1);
  transactions.runIn(insert(begin.number));
  await clock.pass(TRANSACTION_IDLE_MS_MAX);
  assert.equal(await waiting, 0);
  assert.throws(() => transactions.runIn(insert(begin.number)), { code: "transaction_ended" });
  const commit = call("commit", { transaction: begin.number });
  assert.throws(() => transactions.commit(commit), { code: "transaction_ended" });
});

test("one that SQLite rolled back is over, and others have their turn", async () => {
  const { transactions, clock, count } = await scene();
  const begin = call("begin", undefined);
  await transactions.begin(begin);
  const sql = "INSERT OR ROLLBACK INTO t SELECT NULL WHERE 0; ROLLBACK";
  transactions.runIn(call("runIn", { sql, parameters: [], transaction: begin.number }));
  assert.throws(() => transactions.runIn(insert(begin.number)), { code: "transaction_ended" });
  assert.equal(await count(), 0);
  assert.deepEqual(clock.due(), []);
});

test("so many calls wait, and no more", async () => {
  const { transactions, count } = await scene();
  const begin = call("begin", undefined);
  await transactions.begin(begin);
  const waiting = Array.from({ length: 10 }, count);
  await assert.rejects(count(), { code: "busy" });
  transactions.rollback(call("rollback", { transaction: begin.number }));
  assert.deepEqual(
    await Promise.all(waiting),
    Array.from({ length: 10 }, () => 0),
  );
});
