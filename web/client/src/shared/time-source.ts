/** Time and randomness as arguments, so that tests can bring their own. */

export interface TimeSource {
  now(): number;
  /** Calls `work` after `ms` milliseconds; the returned function cancels that. */
  after(ms: number, work: () => void): () => void;
  /** Returns a number of at least 0 and less than 1. */
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

/** The shortest and the longest pause, as in `crates/replica/src/transport/event_stream.rs`. */
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 60_000;

/**
 * Returns the pause before the next try after this many failures: doubled each time, and randomly
 * shortened by up to half, so that not all devices come back at once.
 */
export function backoffMs(failures: number, random: number): number {
  const longest = Math.min(PAUSE_MS_MIN * 2 ** Math.min(failures, 10), PAUSE_MS_MAX);
  return Math.round(longest - random * (longest / 2));
}

/** Waits this long, or until the signal is aborted. */
export function sleep(clock: TimeSource, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, resolve);
    signal.addEventListener("abort", () => {
      cancel();
      resolve();
    });
  });
}
