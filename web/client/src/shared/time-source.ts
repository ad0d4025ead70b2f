/** Time and chance, as arguments: tests bring their own. */

export interface TimeSource {
  now(): number;
  /** Calls after so many milliseconds; what comes back takes it back. */
  after(ms: number, work: () => void): () => void;
  /** At least 0, less than 1. */
  random(): number;
}

export const systemTimeSource: TimeSource = {
  now: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** The first pause, and the longest: as in `crates/replica/src/transport/event_stream.rs`. */
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 60_000;

/**
 * How long to wait before the next try after so many failures: twice as long each time, and by
 * chance up to half of that less, so that not everybody comes back at once.
 */
export function backoffMs(failures: number, random: number): number {
  const longest = Math.min(PAUSE_MS_MIN * 2 ** Math.min(failures, 10), PAUSE_MS_MAX);
  return Math.round(longest - random * (longest / 2));
}

/** Waits so long, or until it is not worth it any more. */
export function sleep(clock: TimeSource, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, resolve);
    signal.addEventListener("abort", () => {
      cancel();
      resolve();
    });
  });
}
