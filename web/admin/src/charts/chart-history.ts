/**
 * What a chart shows: rates and durations of the last three minutes, from answers that count up.
 *
 * Always so:
 * - A rate is of two answers of one run of the server; after a restart begins a new one.
 * - Where there was no answer there is a gap, never a line through it.
 */
import type { ServerOverview, SyncTotals } from "../json-types";

/** How far back charts go. */
export const SPAN_MS = 180_000;
/** Answers that are further apart have a gap between them. */
const GAP_MS = 10_000;
/** Of how long durations are: a second often has no sync, and ten mostly have one. */
const LATENCY_MS = 10_000;

/** One second, as it was; what is null is not known of it. */
export interface ChartPoint {
  /** By the page's clock, milliseconds. */
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

/** With one more answer, and without what is too old. */
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
 * How long syncs took between two answers, in milliseconds: of a share of them no longer than this.
 * Within a bucket they are taken as spread evenly. Null if there were none.
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
    // Past the last bound nothing is known but that.
    const high = after.bounds_ms[place] ?? low;
    if (count > 0 && passed + count >= wanted) {
      return low + ((high - low) * (wanted - passed)) / count;
    }
    passed += count;
  }
  return after.bounds_ms.at(-1) ?? null;
}
