/** Tests the rates and times that the operator's page computes from counters. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerOverview, SyncTotals } from "../../admin/src/json-types.js";
import {
  ago,
  bytes,
  count,
  duration,
  percent,
  rate,
  shortDuration,
} from "../../admin/src/format.js";
import {
  EMPTY,
  percentile,
  withSample,
  SPAN_MS,
  type ChartHistory,
} from "../../admin/src/charts/chart-history.js";

const BOUNDS = [1, 10, 100];

function syncs(counts: readonly number[]): SyncTotals {
  return { count: counts.reduce((sum, part) => sum + part, 0), bounds_ms: BOUNDS, counts };
}

/** Returns an answer of the server after `uptime` milliseconds. */
function overview(uptime: number, total: number, counts: readonly number[]): ServerOverview {
  const messages = { stored_count: total * 10, known_count: 0, sent_count: 0 };
  const counted = { messages, syncs: syncs(counts) };
  const transactions = { committed_count: total, flushes_count: 0 };
  return { uptime_ms: uptime, transactions, ...counted } as unknown as ServerOverview;
}

function after(
  answers: readonly (readonly [at: number, overview: ServerOverview])[],
): ChartHistory {
  return answers.reduce(
    (history, [at, answer]) => withSample(history, { at, overview: answer }),
    EMPTY,
  );
}

test("a rate is by the server's clock, whenever the answers came", () => {
  const { points } = after([
    [0, overview(1_000, 100, [0, 0, 0, 0])],
    [900, overview(3_000, 150, [4, 0, 0, 0])],
  ]);
  assert.equal(points[0]?.transactions, null);
  assert.deepEqual([points[1]?.transactions, points[1]?.syncs, points[1]?.stored], [25, 2, 250]);
});

test("after a restart, and after a pause, there is a gap, and then a rate again", () => {
  const { points } = after([
    [0, overview(9_000, 900, [9, 0, 0, 0])],
    [1_000, overview(500, 3, [0, 0, 0, 0])],
    [2_000, overview(1_500, 5, [0, 0, 0, 0])],
    [20_000, overview(19_500, 50, [0, 0, 0, 0])],
    [21_000, overview(20_500, 51, [0, 0, 0, 0])],
  ]);
  assert.deepEqual(
    points.map((point) => point.transactions),
    [null, null, 2, null, 1],
  );
});

test("what is older than the chart is forgotten", () => {
  const answers = Array.from({ length: 400 }, (_, second) => {
    return [second * 1_000, overview(second * 1_000 + 1, second, [second, 0, 0, 0])] as const;
  });
  const { points, samples } = after(answers);
  assert.equal(points.length, SPAN_MS / 1_000 + 1);
  assert.equal(points.at(-1)?.at, 399_000);
  assert.ok(samples.length <= 11, `${samples.length} samples`);
});

test("of how long syncs took, a share took no longer", () => {
  const none = syncs([0, 0, 0, 0]);
  assert.equal(percentile(none, none, 0.5), null);
  assert.equal(percentile(syncs([5, 5, 5, 5]), syncs([5, 5, 5, 5]), 0.5), null);
  // The median is half of the first bucket.
  assert.equal(percentile(none, syncs([10, 0, 0, 0]), 0.5), 0.5);
  // 90 in the first, 10 in the third: the 99th of a hundred is nine tenths into it.
  const p99 = percentile(none, syncs([90, 0, 10, 0]), 0.99) ?? 0;
  assert.equal(p99.toFixed(3), "91.000");
  assert.equal(percentile(none, syncs([0, 0, 0, 3]), 0.5), 100, "no less than the last bound");
  const newer = percentile(syncs([1_000, 0, 0, 0]), syncs([1_000, 4, 0, 0]), 1) ?? 0;
  assert.equal(newer.toFixed(3), "10.000", "only what came since");
});

test("numbers are written as people read them", () => {
  assert.deepEqual([0, 1023, 1536, 204_800, 5 * 2 ** 30].map(bytes), [
    "0 B",
    "1023 B",
    "1.5 KiB",
    "200 KiB",
    "5.0 GiB",
  ]);
  const shares = ["0 %", "0.4 %", "5.0 %", "50 %", "100 %"];
  assert.deepEqual([0, 0.004, 0.05, 0.5, 1].map(percent), shares);
  assert.deepEqual([0, 0.25, 9.96, 1_234, 1_234_567].map(rate), [
    "0",
    "0.3",
    "10.0",
    "1,234",
    "1.2M",
  ]);
  assert.deepEqual([0.4, 12, 999, 1500, 30_000].map(shortDuration), [
    "0.4 ms",
    "12 ms",
    "999 ms",
    "1.5 s",
    "30 s",
  ]);
  assert.deepEqual([999, 61_000, 3_700_000, 180_000_000].map(duration), [
    "0 s",
    "1 min 1 s",
    "1 h 1 min",
    "2 d 2 h",
  ]);
  assert.equal(count(99_999), "99,999");
  const [now, hour] = [1_700_000_000_000, 3_600_000];
  const said = [-5_000, 30_000, 3 * hour, 48 * hour].map((age) => ago(now - age, now));
  assert.deepEqual(said, ["just now", "a minute ago", "3 h ago", "2 d ago"]);
});
