/** Tests live queries: when they run again, and when subscribers are called. */
import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { test } from "node:test";
import type { ReadResult } from "../../client/src/shared/rpc-methods.js";
import { createLiveQueries } from "../../client/src/tab/live-queries.js";
import { pack } from "./sqlite.js";

const STATEMENT = { sql: "SELECT a FROM t", parameters: [] };

/** Returns a database of one cell, which answers when the test says so. */
function source(): {
  cell: number;
  reads: number;
  answer: (() => void)[];
  read: () => Promise<ReadResult>;
} {
  const it = {
    cell: 1,
    reads: 0,
    answer: [] as (() => void)[],
    read: () => {
      it.reads += 1;
      const packed = pack(["a"], [[it.cell]]);
      return new Promise<ReadResult>((resolve) => {
        it.answer.push(() => resolve({ packed, tables: ["T"] }));
      });
    },
  };
  return it;
}

async function answerAll(it: { answer: (() => void)[] }): Promise<void> {
  for (; it.answer.length > 0; await setImmediate()) {
    it.answer.shift()?.();
    await setImmediate();
  }
}

test("only a table that is read makes it run again, and only other rows are told", async () => {
  const it = source();
  const live = createLiveQueries(it.read);
  const told: unknown[] = [];
  const stop = live.subscribe(STATEMENT, (rows) => told.push(rows));
  await answerAll(it);
  assert.deepEqual(told, [[{ a: 1 }]]);

  live.changed(["other"]);
  await answerAll(it);
  assert.equal(it.reads, 1);

  live.changed(["t"]);
  await answerAll(it);
  assert.equal(it.reads, 2);
  assert.equal(told.length, 1, "equal rows are not told again");

  it.cell = 2;
  live.changed(["t"]);
  await answerAll(it);
  assert.deepEqual(told.at(-1), [{ a: 2 }]);

  stop();
  live.changed(["t"]);
  assert.equal(it.reads, 3);
});

test("changes while it runs make it run once more, however many they are", async () => {
  const it = source();
  const live = createLiveQueries(it.read);
  const told: unknown[] = [];
  live.subscribe(STATEMENT, (rows) => told.push(rows));
  it.cell = 2;
  for (let i = 0; i < 10; i += 1) {
    live.changed(["t"]);
  }
  await answerAll(it);
  assert.equal(it.reads, 2);
  assert.deepEqual(told, [[{ a: 1 }], [{ a: 2 }]]);
});

test("a failure is told, and does not end the query", async () => {
  let isBroken = true;
  const live = createLiveQueries(() =>
    isBroken
      ? Promise.reject(Object.assign(new Error("no such table"), { code: "sqlite_error" }))
      : Promise.resolve({ packed: pack(["a"], [[3]]), tables: ["t"] }),
  );
  const rows: unknown[] = [];
  const codes: string[] = [];
  live.subscribe(STATEMENT, (next) => rows.push(next), (error) => codes.push(error.code));
  await setImmediate();
  assert.deepEqual(codes, ["sqlite_error"]);
  isBroken = false;
  live.changed(["whatever"]);
  await setImmediate();
  assert.deepEqual(rows, [[{ a: 3 }]]);
});
