/** Calls under way: how they end, and what becomes of them with another owner. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { asking, type Asking } from "../../client/src/asking.js";
import type { Call, ToOwner } from "../../client/src/messages.js";
import { fakeClock } from "./clock.js";
import { pack } from "./sqlite.js";

const STATEMENT = { sql: "SELECT 1", parameters: [] };

function scene(): { asks: Asking; clock: ReturnType<typeof fakeClock>; sent: Call[] } {
  const clock = fakeClock();
  return { asks: asking("tab", clock), clock, sent: [] };
}

/** An owner that keeps what it is asked. */
const keeping =
  (sent: Call[]) =>
  (message: ToOwner): void => {
    if (message.kind === "call") {
      sent.push(message);
    }
  };

test("what had no owner waits for one, and goes on to the next one in order", async () => {
  const { asks, sent } = scene();
  const first = asks.ask("run", STATEMENT);
  const second = asks.ask("runIn", { ...STATEMENT, transaction: 1 });
  asks.moveTo("a", keeping(sent), () => undefined);
  assert.deepEqual(sent.map(({ number, again }) => [number, again]), [[1, false], [2, false]]);
  asks.moveTo("b", keeping(sent), () => asks.ask("prepare", {} as never));
  assert.deepEqual(
    sent.slice(2).map(({ name, number, again }) => [name, number, again]),
    [["prepare", 3, false], ["run", 1, true]],
  );
  await assert.rejects(second.answer, { code: "owner_lost" });
  const packed = pack(["a"], [[1]]);
  asks.hear({ kind: "answer", from: "b", number: 1, value: packed });
  assert.equal(await first.answer, packed);
});

test("an answer of an owner that was given up does not count", async () => {
  const { asks, sent } = scene();
  asks.moveTo("a", keeping(sent), () => undefined);
  const { answer } = asks.ask("runMany", { sql: "", parameters: [] });
  asks.moveTo("b", keeping(sent), () => undefined);
  asks.hear({ kind: "answer", from: "a", number: 1, value: 1 });
  asks.hear({ kind: "error", from: "a", number: 1, error: { code: "internal", message: "" } });
  asks.hear({ kind: "answer", from: "b", number: 1, value: 2 });
  assert.equal(await answer, 2);
});

test("a call says up to where all have their answers", () => {
  const { asks, sent } = scene();
  asks.moveTo("a", keeping(sent), () => undefined);
  const send = (): void => void asks.ask("runMany", { sql: "", parameters: [] });
  [1, 2, 3].forEach(send);
  [1, 3].forEach((number) => asks.hear({ kind: "answer", from: "a", number, value: 0 }));
  send();
  asks.hear({ kind: "answer", from: "a", number: 2, value: 0 });
  asks.hear({ kind: "answer", from: "a", number: 4, value: 0 });
  send();
  assert.deepEqual(sent.map(({ settled }) => settled), [0, 0, 0, 1, 4]);
});

test("every call ends: by its time-out, its signal, or the end of all", async () => {
  const { asks, clock } = scene();
  const late = asks.ask("run", STATEMENT);
  const timedOut = assert.rejects(late.answer, { code: "timeout" });
  await clock.pass(120_000);
  await timedOut;
  const cancel = new AbortController();
  const cancelled = asks.ask("sync", undefined, { signal: cancel.signal });
  cancel.abort();
  await assert.rejects(cancelled.answer, { code: "aborted" });
  const last = asks.ask("run", STATEMENT);
  asks.end({ code: "closed", message: "" });
  await assert.rejects(last.answer, { code: "closed" });
  await assert.rejects(asks.ask("run", STATEMENT).answer, { code: "closed" });
  assert.deepEqual(clock.due(), []);
});

test("there is a bound to what is under way", async () => {
  const { asks } = scene();
  const answers = Array.from({ length: 20_001 }, () => asks.ask("run", STATEMENT).answer);
  await assert.rejects(answers.at(-1) as Promise<unknown>, { code: "busy" });
  const ended = Promise.allSettled(answers);
  asks.end({ code: "closed", message: "" });
  const codes = (await ended).map((one) => (one.status === "rejected" ? one.reason.code : ""));
  assert.equal(codes.filter((code) => code === "closed").length, 20_000);
});
