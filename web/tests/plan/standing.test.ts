/** Tests the texts for the database's status: each state has its own, and says what to do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DatabaseStatus, ErrorCode, SyncState } from "@warren/client";
import { syncIndicator, type SyncRemedy } from "../../plan/src/sync/sync-indicator.js";

const NOW = Date.UTC(2026, 10, 22);
/** A code that only a newer server sends. */
const NEWER_CODE = "something_new" as ErrorCode;

function told(
  sync: SyncState,
  rest: Partial<DatabaseStatus> = {},
): ReturnType<typeof syncIndicator> {
  const status: DatabaseStatus = {
    storage: "opfs",
    isLeader: true,
    account: { server: "https://example.org", login: "anna" },
    endToEndEncrypted: false,
    encrypted: false,
    unsentCount: 0,
    newConflictsCount: 0,
    hiddenRowsCount: 0,
    sync,
    ...rest,
  };
  return syncIndicator(status, NOW);
}

/** Returns the indicator of a database without an account. */
function alone(rest: Partial<DatabaseStatus> = {}): ReturnType<typeof syncIndicator> {
  const { account: _, ...status } = { ...base, ...rest };
  return syncIndicator(status, NOW);
}

const base: DatabaseStatus = {
  storage: "opfs",
  isLeader: true,
  endToEndEncrypted: false,
  encrypted: false,
  unsentCount: 0,
  newConflictsCount: 0,
  hiddenRowsCount: 0,
  sync: { phase: "local" },
};

const failed = (code: ErrorCode, unsentCount = 0): ReturnType<typeof syncIndicator> =>
  told({ phase: "failed", error: { code, message: "the words of the code" } }, { unsentCount });

test("without an account: on this device only, or not even there", () => {
  assert.equal(alone().label, "Only on this device");
  assert.equal(alone().tone, "quiet");
  const memory = alone({ storage: "memory" });
  const { tone, label, remedy } = memory;
  assert.deepEqual([tone, label, remedy], ["warn", "Not saved permanently", "signUp"]);
});

test("signed out: whose items these are", () => {
  const standing = syncIndicator(base, NOW, "anna");
  assert.deepEqual([standing.label, standing.remedy], ["Signed out", "signIn"]);
  assert.match(standing.detail, /anna’s items/);
});

test("in sync: since when", () => {
  const standing = told({ phase: "inSync" }, { lastSyncedMs: NOW - 5 * 60_000 });
  assert.deepEqual([standing.tone, standing.label], ["ok", "Synced"]);
  assert.match(standing.detail, /Last synced 5 min ago\.$/);
});

test("in sync, but the server has lost changes: who may have them", () => {
  const serverLoss = {
    repairedMs: NOW - 2 * 3_600_000,
    missingCount: 44,
    devicesAway: ["a", "b", "c", "d"],
  };
  const standing = told({ phase: "inSync" }, { serverLoss });
  assert.deepEqual([standing.tone, standing.label], ["warn", "Changes missing"]);
  const toldAll = /44 changes to a damaged disk \(2 h ago\).*: a, b, c, 1 more\. Open Plan there\./;
  assert.match(standing.detail, toldAll);
  const nobody = told({ phase: "inSync" }, { serverLoss: { ...serverLoss, devicesAway: [] } });
  assert.match(nobody.detail, /44 changes .* none of them had these/);
  const unknown = { repairedMs: NOW, devicesAway: [] };
  const uncounted = told({ phase: "inSync" }, { serverLoss: unknown });
  assert.match(uncounted.detail, /unknown number of changes .* Open Plan on each device/);
});

test("syncing: how many of how many, as soon as it is known", () => {
  const progress = { stage: "received", done: 1200, total: 40_000 } as const;
  const standing = told({ phase: "syncing", progress });
  assert.equal(standing.label, "Syncing 1,200 / 40,000");
  assert.equal(standing.fraction, 0.03);
  assert.equal(told({ phase: "syncing" }).fraction, undefined);
  const applied = { stage: "applied", done: 3000, total: 0 } as const;
  assert.equal(told({ phase: "syncing", progress: applied }).label, "Applied 3,000 changes");
});

test("offline: what waits is counted", () => {
  const error = { code: "unreachable", message: "y" } as const;
  const offline = { phase: "offline", retryMs: 1, error } as const;
  assert.equal(told(offline).label, "Offline");
  const waiting = told(offline, { unsentCount: 1200 });
  assert.equal(waiting.label, "Offline · 1,200 to sync");
  assert.match(waiting.detail, /1,200 changes will sync/);
});

test("each failure says what to do, and that nothing is lost", () => {
  const remedies: readonly (readonly [ErrorCode, SyncRemedy])[] = [
    ["invalid_token", "signIn"],
    ["wrong_password", "signIn"],
    ["recovery_phrase_required", "phrase"],
    ["wrong_recovery_phrase", "phrase"],
    ["encryption_undecided", "begin"],
    ["account_not_encrypted", "retry"],
    ["recovery_phrase_unverified", "begin"],
    ["quota_exceeded", "retry"],
    ["disk_full", "export"],
    ["clock_drift", "retry"],
    [NEWER_CODE, "retry"],
  ];
  for (const [code, remedy] of remedies) {
    const standing = failed(code, 3);
    assert.deepEqual([standing.tone, standing.remedy], ["bad", remedy], code);
    assert.match(standing.detail, /3 changes are saved here and will sync later/);
  }
  assert.match(failed(NEWER_CODE).detail, /The words of the code\. \(something_new\)/);
});
