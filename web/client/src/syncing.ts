/**
 * When to sync, and how it stands: by itself after changes here and there, when the network is
 * back, after a sign-in; with growing pauses while the server is away; and when somebody asks.
 *
 * Invariants:
 * - One sync at a time; what asks meanwhile gets one that began after it asked.
 * - A refusal that only somebody can change stops the trying, until somebody asks or signs in.
 * - A transaction that a tab wants to begin does not wait for a slow server: the sync is
 *   interrupted, and goes on after it from where it was.
 */
import type { ErrorInfo, Progress, SyncReport, SyncState } from "./api.js";
import { pauseMs, type Clock } from "./clock.js";
import { errorInfo, failure } from "./errors.js";
import { lane } from "./lane.js";

/** Changes that come one after the other go together. */
export const QUIET_MS = 150;
/** So long a transaction waits for a running sync. */
const YIELD_MS = 250;
/** So often one sync gives way. */
const YIELDS_COUNT_MAX = 20;
const NETWORK_CALLS_WAITING_MAX = 1_000;

/** What the file says of itself. */
export interface Standing {
  readonly hasAccount: boolean;
  readonly unsent: number;
  /** Whether both sides held the same set when they last spoke. */
  readonly equal: boolean;
}

type OnProgress = (progress: Progress) => void;

export interface SyncingParts {
  readonly clock: Clock;
  sync(onProgress: OnProgress, signal: AbortSignal): Promise<SyncReport>;
  /** Ends when the server does not speak any more. */
  listen(onState: () => void, signal: AbortSignal): Promise<void>;
  standing(): Standing;
  setState(state: SyncState): void;
  /** A sync is over. */
  synced(): void;
}

export interface Syncing {
  /** Begins to sync by itself, unless that is not wanted. */
  start(isAuto: boolean): void;
  sync(onProgress: OnProgress, signal: AbortSignal): Promise<SyncReport>;
  /** Something changed here. */
  changed(): void;
  online(): void;
  /** There is an account now, or another, or what was in the way is not any more. */
  mended(): void;
  signedOut(): void;
  /** Runs another call to the server: not beside a sync, nor beside a transaction. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** As `StatementsParts.holdSyncs`. */
  hold(): Promise<() => void>;
  stop(): void;
}

/** What another try may mend, without anybody doing anything. */
const PASSING: ReadonlySet<string> = new Set([
  "busy",
  "internal",
  "storage_busy",
  "timeout",
  "too_many_attempts",
  "unavailable",
  "unreachable",
]);

type Trouble = { readonly passes: boolean; readonly error: ErrorInfo; readonly retryMs: number };

export function syncing(parts: SyncingParts): Syncing {
  const { clock } = parts;
  const network = lane(NETWORK_CALLS_WAITING_MAX);
  const stopped = new AbortController();
  let isAuto = false;
  let failures = 0;
  let trouble: Trouble | undefined;
  let underWay: AbortController | undefined;
  let progress: Progress | undefined;
  let isWanted = false;
  let isDriving = false;
  let cancelTimer = (): void => undefined;
  let listening: AbortController | undefined;

  function tell(): void {
    parts.setState(state());
  }

  function state(): SyncState {
    const standing = parts.standing();
    if (!standing.hasAccount) {
      return { phase: "local" };
    }
    if (underWay !== undefined) {
      return progress === undefined ? { phase: "syncing" } : { phase: "syncing", progress };
    }
    if (trouble !== undefined) {
      const { error, retryMs } = trouble;
      return trouble.passes ? { phase: "offline", retryMs, error } : { phase: "failed", error };
    }
    return { phase: standing.unsent === 0 && standing.equal ? "inStep" : "pending" };
  }

  /** One sync, however often it has to give way. */
  async function sync(onProgress: OnProgress, signal: AbortSignal): Promise<SyncReport> {
    for (let yields = 0; ; yields += 1) {
      const free = await network.take();
      const own = new AbortController();
      try {
        AbortSignal.any([signal, stopped.signal]).throwIfAborted();
        underWay = yields < YIELDS_COUNT_MAX ? own : new AbortController();
        tell();
        const both = AbortSignal.any([signal, stopped.signal, own.signal]);
        const report = await parts.sync((now) => {
          progress = now;
          tell();
          onProgress(now);
        }, both);
        succeeded();
        return report;
      } catch (thrown) {
        const hasYielded = own.signal.aborted && !signal.aborted && !stopped.signal.aborted;
        if (!hasYielded) {
          failed(thrown, signal.aborted || stopped.signal.aborted);
          throw signal.aborted ? failure("aborted", "the sync was cancelled") : thrown;
        }
      } finally {
        underWay = undefined;
        progress = undefined;
        free();
        parts.synced();
        tell();
      }
    }
  }

  function succeeded(): void {
    failures = 0;
    trouble = undefined;
    listen();
  }

  function failed(thrown: unknown, wasCancelled: boolean): void {
    if (wasCancelled) {
      return;
    }
    const error = errorInfo(thrown);
    const passes = PASSING.has(error.code);
    const retryMs = pauseMs(failures, clock.random());
    failures += 1;
    trouble = { passes, error, retryMs };
    if (passes) {
      schedule(retryMs);
    } else if (error.code === "invalid_token") {
      listening?.abort();
    }
  }

  function schedule(ms: number): void {
    cancelTimer();
    cancelTimer = clock.after(ms, () => void drive());
  }

  /** Syncs by itself, and again if it was wanted meanwhile. */
  async function drive(): Promise<void> {
    cancelTimer();
    isWanted = true;
    if (isDriving || !isAuto || stopped.signal.aborted) {
      return;
    }
    isDriving = true;
    try {
      while (isWanted && parts.standing().hasAccount) {
        isWanted = false;
        await sync(() => undefined, stopped.signal);
      }
    } catch {
      // It is in the state, and the next try is scheduled if there is to be one.
    } finally {
      isDriving = false;
      isWanted = false;
    }
  }

  function listen(): void {
    if (!isAuto || listening !== undefined || stopped.signal.aborted) {
      return;
    }
    const own = new AbortController();
    listening = own;
    void keepListening(AbortSignal.any([own.signal, stopped.signal])).finally(() => {
      listening = undefined;
    });
  }

  async function keepListening(signal: AbortSignal): Promise<void> {
    for (let silences = 0; !signal.aborted && parts.standing().hasAccount; silences += 1) {
      try {
        await parts.listen(() => {
          silences = 0;
          heard();
        }, signal);
      } catch (thrown) {
        const error = errorInfo(thrown);
        if (!signal.aborted && !PASSING.has(error.code)) {
          // Why, the next sync is told as well.
          void drive();
          return;
        }
      }
      await pause(pauseMs(silences, clock.random()), signal);
    }
  }

  function heard(): void {
    if (trouble === undefined || trouble.passes) {
      void drive();
    }
  }

  function pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(ms, resolve);
      signal.addEventListener("abort", () => {
        cancel();
        resolve();
      });
    });
  }

  return {
    start(wanted) {
      const isNew = wanted && !isAuto;
      isAuto ||= wanted;
      tell();
      if (isNew && parts.standing().hasAccount) {
        void drive();
        listen();
      }
    },
    sync,
    changed() {
      tell();
      const { hasAccount, unsent } = parts.standing();
      if (hasAccount && unsent > 0 && trouble === undefined) {
        schedule(QUIET_MS);
      }
    },
    online() {
      if (trouble === undefined || trouble.passes) {
        failures = 0;
        void drive();
      }
    },
    mended() {
      failures = 0;
      trouble = undefined;
      tell();
      void drive();
    },
    signedOut() {
      cancelTimer();
      listening?.abort();
      trouble = undefined;
      tell();
    },
    async exclusively(work) {
      const free = await network.take();
      try {
        return await work();
      } finally {
        free();
        tell();
      }
    },
    async hold() {
      const now = network.takeNow();
      if (now !== undefined) {
        return now;
      }
      const cancel = clock.after(YIELD_MS, () => underWay?.abort());
      try {
        return await network.take();
      } finally {
        cancel();
      }
    },
    stop() {
      cancelTimer();
      stopped.abort();
    },
  };
}
