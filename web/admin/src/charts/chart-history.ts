/**
 * The data of the charts: rates and durations of the last three minutes, from counters in the
 * answers.
 *
 * Invariants:
 * - A rate comes from two answers of one run of the server; after a restart, rates start again.
 * - If there was no answer, the chart has a gap, never a line across it.
 */
import type { ServerOverview, SyncTotals } from "../json-types";

/** The time span of the charts. */
export const SPAN_MS = 180_000;
/** Two answers that are further apart have a gap between them. */
const GAP_MS = 10_000;
/** The time span of durations: one second often has no sync, and ten seconds mostly have one. */
const LATENCY_MS = 10_000;

/** The values at one second; null means unknown. */
export interface ChartPoint {
  /** The time by the page's clock, in milliseconds. */
  readonly at: number;
  readonly transactions: number | null;
  readonly syncs: number | null;
  readonly stored: number | null;
  readonly p50: number | null;
  readonly p99: number | null;
}

export interface OverviewSample {
  readonly at: number;
  readonly overview: ServerOverview;
}

export interface ChartHistory {
  readonly samples: readonly OverviewSample[];
  readonly points: readonly ChartPoint[];
}

export const EMPTY: ChartHistory = { samples: [], points: [] };

/** Returns the history with one more answer, and without entries that are too old. */
export function withSample(history: ChartHistory, sample: OverviewSample): ChartHistory {
  const last = history.samples.at(-1);
  const isSameRun = last !== undefined && last.overview.uptime_ms < sample.overview.uptime_ms;
  const isNear = last !== undefined && sample.at - last.at < GAP_MS;
  const kept = history.samples.filter((old) => sample.at - old.at <= LATENCY_MS);
  const samples = [...(isSameRun ? kept : []), sample];
  const points = history.points.filter((old) => sample.at - old.at <= SPAN_MS);
  const point = isSameRun && isNear ? between(last, sample, samples) : gap(sample.at);
  return { samples, points: [...points, point] };
}

function gap(at: number): ChartPoint {
  return { at, transactions: null, syncs: null, stored: null, p50: null, p99: null };
}

function between(
  from: OverviewSample,
  to: OverviewSample,
  samples: readonly OverviewSample[],
): ChartPoint {
  const seconds = (to.overview.uptime_ms - from.overview.uptime_ms) / 1000;
  const rate = (of: (overview: ServerOverview) => number): number =>
    Math.max(0, of(to.overview) - of(from.overview)) / seconds;
  const oldest = samples[0] ?? from;
  return {
    at: to.at,
    transactions: rate((overview) => overview.transactions.committed_count),
    syncs: rate((overview) => overview.syncs.count),
    stored: rate((overview) => overview.messages.stored_count),
    p50: percentile(oldest.overview.syncs, to.overview.syncs, 0.5),
    p99: percentile(oldest.overview.syncs, to.overview.syncs, 0.99),
  };
}

/**
 * Returns the percentile of sync durations between two answers, in milliseconds: the given share
 * of the syncs took no longer. Durations are assumed to be spread evenly within a bucket. Null if
 * there were no syncs.
 */
export function percentile(before: SyncTotals, after: SyncTotals, share: number): number | null {
  const counts = after.counts.map((count, place) => count - (before.counts[place] ?? 0));
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= 0) {
    return null;
  }
  const wanted = share * total;
  let passed = 0;
  for (const [place, count] of counts.entries()) {
    const low = after.bounds_ms[place - 1] ?? 0;
    // Durations beyond the last bound have no upper limit, so the bound itself is used.
    const high = after.bounds_ms[place] ?? low;
    if (count > 0 && passed + count >= wanted) {
      return low + ((high - low) * (wanted - passed)) / count;
    }
    passed += count;
  }
  return after.bounds_ms.at(-1) ?? null;
}
