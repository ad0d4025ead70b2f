/** Tests pending calls: how they end, and what another leader does with them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RpcClient } from "../../client/src/tab/rpc-client.js";
import type { RpcCall, LeaderMessage } from "../../client/src/shared/tab-messages.js";
import { fakeClock } from "./clock.js";
import { pack } from "./sqlite.js";

const STATEMENT = { sql: "SELECT 1", parameters: [] };

function scene(): { asks: RpcClient; clock: ReturnType<typeof fakeClock>; sent: RpcCall[] } {
  const clock = fakeClock();
  return { asks: new RpcClient("tab", clock), clock, sent: [] };
}

/** Returns a leader that records the calls it receives. */
const keeping =
  (sent: RpcCall[]) =>
  (message: LeaderMessage): void => {
    if (message.kind === "call") {
      sent.push(message);
    }
  };

test("what had no leader waits for one, and goes on to the next one in order", async () => {
  const { asks, sent } = scene();
  const first = asks.invoke("run", STATEMENT);
  const second = asks.invoke("runIn", { ...STATEMENT, transaction: 1 });
  asks.setLeader("a", keeping(sent), () => undefined);
  assert.deepEqual(
    sent.map(({ number, retry }) => [number, retry]),
    [
      [1, false],
      [2, false],
    ],
  );
  asks.setLeader("b", keeping(sent), () => asks.invoke("prepare", {} as never));
  assert.deepEqual(
    sent.slice(2).map(({ method, number, retry }) => [method, number, retry]),
    [
      ["prepare", 3, false],
      ["run", 1, true],
    ],
  );
  await assert.rejects(second.answer, { code: "leader_lost" });
  const packed = pack(["a"], [[1]]);
  asks.handleMessage({ kind: "answer", from: "b", number: 1, value: packed });
  assert.equal(await first.answer, packed);
});

test("an answer of a leader that was given up does not count", async () => {
  const { asks, sent } = scene();
  asks.setLeader("a", keeping(sent), () => undefined);
  const { answer } = asks.invoke("runMany", { sql: "", parameters: [] });
  asks.setLeader("b", keeping(sent), () => undefined);
  asks.handleMessage({ kind: "answer", from: "a", number: 1, value: 1 });
  asks.handleMessage({
    kind: "error",
    from: "a",
    number: 1,
    error: { code: "internal", message: "" },
  });
  asks.handleMessage({ kind: "answer", from: "b", number: 1, value: 2 });
  assert.equal(await answer, 2);
});

test("a call says up to where all have their answers", () => {
  const { asks, sent } = scene();
  asks.setLeader("a", keeping(sent), () => undefined);
  const send = (): void => void asks.invoke("runMany", { sql: "", parameters: [] });
  [1, 2, 3].forEach(send);
  [1, 3].forEach((number) => asks.handleMessage({ kind: "answer", from: "a", number, value: 0 }));
  send();
  asks.handleMessage({ kind: "answer", from: "a", number: 2, value: 0 });
  asks.handleMessage({ kind: "answer", from: "a", number: 4, value: 0 });
  send();
  assert.deepEqual(
    sent.map(({ ackedUpTo }) => ackedUpTo),
    [0, 0, 0, 1, 4],
  );
});

test("every call ends: by its time-out, its signal, or the end of all", async () => {
  const { asks, clock } = scene();
  const late = asks.invoke("run", STATEMENT);
  const timedOut = assert.rejects(late.answer, { code: "timeout" });
  await clock.pass(120_000);
  await timedOut;
  const cancel = new AbortController();
  const cancelled = asks.invoke("sync", undefined, { signal: cancel.signal });
  cancel.abort();
  await assert.rejects(cancelled.answer, { code: "cancelled" });
  const last = asks.invoke("run", STATEMENT);
  asks.rejectAll({ code: "closed", message: "" });
  await assert.rejects(last.answer, { code: "closed" });
  await assert.rejects(asks.invoke("run", STATEMENT).answer, { code: "closed" });
  assert.deepEqual(clock.due(), []);
});

test("there is a bound to what is under way", async () => {
  const { asks } = scene();
  const answers = Array.from({ length: 20_001 }, () => asks.invoke("run", STATEMENT).answer);
  await assert.rejects(answers.at(-1) as Promise<unknown>, { code: "busy" });
  const ended = Promise.allSettled(answers);
  asks.rejectAll({ code: "closed", message: "" });
  const codes = (await ended).map((one) => (one.status === "rejected" ? one.reason.code : ""));
  assert.equal(codes.filter((code) => code === "closed").length, 20_000);
});
