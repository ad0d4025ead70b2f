/** Tests when the scheduler syncs automatically, and the states that it publishes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ErrorCode, SyncReport, SyncState } from "../../client/src/api.js";
import { backoffMs } from "../../client/src/shared/time-source.js";
import { DEBOUNCE_MS, SyncScheduler } from "../../client/src/worker/sync/sync-scheduler.js";
import type { LocalSyncState } from "../../client/src/worker/sync/sync-state.js";
import { fakeClock, type FakeClock } from "./clock.js";

const REPORT: SyncReport = {
  sentCount: 0,
  receivedCount: 0,
  inSync: true,
  reconciled: false,
  newRejectedCount: 0,
  rejectedCount: 0,
  setAsideCount: 0,
  missingTables: [],
  erasedCount: 0,
  conflictsCount: 0,
  hiddenRowsCount: 0,
  renumberedRows: [],
  mergedRows: [],
};

interface SyncScene {
  readonly clock: FakeClock;
  readonly syncing: SyncScheduler;
  standing: LocalSyncState;
  /** The outcomes of the next syncs: a code, or success. */
  outcomes: (ErrorCode | undefined)[];
  syncs: number;
  readonly states: SyncState[];
  /** Ends a sync that has begun. */
  end: (() => void) | undefined;
  isHeld: boolean;
  heard: (() => void) | undefined;
}

const refusal = (code: ErrorCode): Error => Object.assign(new Error(code), { code });

function scene(): SyncScene {
  const clock = fakeClock();
  const it: SyncScene = {
    clock,
    standing: { hasAccount: true, unsyncedCount: 0, inSync: true },
    outcomes: [],
    syncs: 0,
    states: [],
    end: undefined,
    isHeld: false,
    heard: undefined,
    syncing: new SyncScheduler({
      clock,
      sync: (_, signal) => {
        it.syncs += 1;
        const code = it.outcomes.shift();
        return new Promise((resolve, reject) => {
          signal.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
          const end = (): void => (code === undefined ? resolve(REPORT) : reject(refusal(code)));
          it.end = end;
          if (!it.isHeld) {
            end();
          }
        });
      },
      listen: (onState, signal) => {
        it.heard = onState;
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
      },
      standing: () => it.standing,
      setState: (state) => it.states.push(state),
      synced: () => undefined,
    }),
  };
  return it;
}

const phase = (it: SyncScene): string | undefined => it.states.at(-1)?.phase;
const ignore = (): void => undefined;
const never = new AbortController().signal;

test("pauses double up to a minute, and chance takes up to half of them", () => {
  const longest = Array.from({ length: 9 }, (_, failures) => backoffMs(failures, 0));
  assert.deepEqual(longest, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  assert.equal(backoffMs(0, 1), 250);
  assert.equal(backoffMs(1_000, 0.5), 45_000);
});

test("changes that follow each other go together, when they pause", async () => {
  const it = scene();
  it.syncing.start(true);
  await it.clock.pass(0);
  assert.deepEqual([it.syncs, phase(it)], [1, "inSync"]);
  it.standing = { ...it.standing, unsyncedCount: 1 };
  for (let i = 0; i < 5; i += 1) {
    it.syncing.changed();
    assert.equal(phase(it), "pending");
    await it.clock.pass(DEBOUNCE_MS - 1);
  }
  assert.equal(it.syncs, 1);
  await it.clock.pass(1);
  assert.equal(it.syncs, 2);
  it.syncing.changed();
  it.standing = { ...it.standing, unsyncedCount: 0 };
  it.syncing.changed();
  assert.equal(phase(it), "inSync");
});

test("a server that is away is asked again with growing pauses, at once when online", async () => {
  const it = scene();
  it.outcomes = ["unreachable", "unavailable", "unexpected_response"];
  it.syncing.start(true);
  await it.clock.pass(0);
  const state = it.states.at(-1);
  assert.ok(state?.phase === "offline");
  assert.deepEqual([state.retryMs, state.error.code], [500, "unreachable"]);
  await it.clock.pass(499);
  assert.equal(it.syncs, 1);
  await it.clock.pass(1);
  assert.equal(it.syncs, 2);
  await it.clock.pass(1_000);
  assert.deepEqual([it.syncs, phase(it)], [3, "offline"]);
  it.syncing.online();
  await it.clock.pass(0);
  assert.deepEqual([it.syncs, phase(it)], [4, "inSync"]);
});

test("what only somebody can change is not tried again until somebody did", async () => {
  const it = scene();
  it.outcomes = ["invalid_token"];
  it.syncing.start(true);
  await it.clock.pass(0);
  assert.equal(phase(it), "failed");
  it.standing = { ...it.standing, unsyncedCount: 1 };
  it.syncing.changed();
  it.syncing.online();
  it.heard?.();
  await it.clock.pass(600_000);
  assert.equal(it.syncs, 1);
  it.standing = { ...it.standing, unsyncedCount: 0 };
  it.syncing.resume();
  await it.clock.pass(0);
  assert.deepEqual([it.syncs, phase(it)], [2, "inSync"]);
});

test("the server's word begins a sync, one more if it came during one", async () => {
  const it = scene();
  it.syncing.start(true);
  await it.clock.pass(0);
  it.isHeld = true;
  it.heard?.();
  await it.clock.pass(0);
  it.heard?.();
  it.heard?.();
  assert.deepEqual([it.syncs, phase(it)], [2, "syncing"]);
  it.isHeld = false;
  it.end?.();
  await it.clock.pass(0);
  assert.deepEqual([it.syncs, phase(it)], [3, "inSync"]);
});

test("without an account, or when it is not wanted, nothing is done by itself", async () => {
  const none = scene();
  none.standing = { hasAccount: false, unsyncedCount: 3, inSync: false };
  none.syncing.start(true);
  none.syncing.changed();
  const unwanted = scene();
  unwanted.standing = { ...unwanted.standing, unsyncedCount: 3 };
  unwanted.syncing.start(false);
  unwanted.syncing.changed();
  for (const it of [none, unwanted]) {
    await it.clock.pass(600_000);
    assert.equal(it.syncs, 0);
  }
  assert.deepEqual([phase(none), phase(unwanted)], ["local", "pending"]);
  assert.deepEqual(await unwanted.syncing.sync(ignore, never), REPORT);
});

test("a sync is cancelled by its signal, and that is no trouble", async () => {
  const it = scene();
  it.isHeld = true;
  const cancel = new AbortController();
  const cancelled = it.syncing.sync(ignore, cancel.signal);
  await it.clock.pass(0);
  cancel.abort();
  await assert.rejects(cancelled, { code: "cancelled" });
  assert.equal(phase(it), "inSync");
});

test("what needs quiet interrupts a sync, which goes on after it", async () => {
  const it = scene();
  it.isHeld = true;
  const order: string[] = [];
  const synced = it.syncing.sync(ignore, never).then(() => order.push("synced"));
  await it.clock.pass(0);
  const quiet = it.syncing.preemptSync(async () => {
    order.push("quiet");
    it.isHeld = false;
  });
  await Promise.all([synced, quiet]);
  assert.deepEqual([order, it.syncs], [["quiet", "synced"], 2]);
});

test("stopping ends the running sync, and waits for that", async () => {
  const it = scene();
  it.isHeld = true;
  const ended = assert.rejects(it.syncing.sync(ignore, never));
  await it.clock.pass(0);
  await it.syncing.stop();
  await ended;
  it.syncing.online();
  await it.clock.pass(600_000);
  assert.equal(it.syncs, 1);
});
