/** A clock that advances only when the test says so. */
import { setImmediate } from "node:timers/promises";
import type { TimeSource } from "../../client/src/shared/time-source.js";

export interface FakeClock extends TimeSource {
  /** Lets time pass, and runs everything that is due, until nothing more follows. */
  pass(ms: number): Promise<void>;
  /** Returns when the waiting calls are due, in milliseconds from now. */
  due(): number[];
}

export function fakeClock(): FakeClock {
  let nowMs = 1_000_000;
  const waiting = new Set<{ readonly atMs: number; readonly work: () => void }>();
  return {
    now: () => nowMs,
    random: () => 0,
    after(ms, work) {
      const one = { atMs: nowMs + ms, work };
      waiting.add(one);
      return () => void waiting.delete(one);
    },
    due: () => [...waiting].map(({ atMs }) => atMs - nowMs).sort((a, b) => a - b),
    async pass(ms) {
      const untilMs = nowMs + ms;
      for (;;) {
        await setImmediate();
        const next = [...waiting].sort((a, b) => a.atMs - b.atMs)[0];
        if (next === undefined || next.atMs > untilMs) {
          break;
        }
        nowMs = next.atMs;
        waiting.delete(next);
        next.work();
      }
      nowMs = untilMs;
    },
  };
}
