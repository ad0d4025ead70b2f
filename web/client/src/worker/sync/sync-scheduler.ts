/**
 * When to sync, and how it stands: by itself after changes here and there, when the network is
 * back, after a sign-in; with growing pauses while the server is away; and when somebody asks.
 *
 * Invariants:
 * - One sync at a time; what asks meanwhile gets one that began after it asked.
 * - A refusal that only somebody can change stops the trying, until somebody asks or signs in.
 * - What needs the file without a sync interrupts it; it goes on after that from where it was.
 */
import type { ErrorInfo, SyncProgress, SyncReport, SyncState } from "../../api.js";
import { sleep, backoffMs, type TimeSource } from "../../shared/time-source.js";
import { toErrorInfo, clientError } from "../../shared/errors.js";
import { createMutex } from "../mutex.js";

/** Changes that come one after the other go together. */
export const DEBOUNCE_MS = 150;
const NETWORK_CALLS_WAITING_MAX = 1_000;

/** What the file says of itself. */
export interface LocalSyncState {
  readonly hasAccount: boolean;
  /** Changes that are to be sent, and tables whose changes only a sync finds. */
  readonly toSync: number;
  /** Whether both sides held the same set when they last spoke. */
  readonly equal: boolean;
}

type SyncProgressListener = (progress: SyncProgress) => void;

export interface SyncSchedulerDeps {
  readonly clock: TimeSource;
  sync(onProgress: SyncProgressListener, signal: AbortSignal): Promise<SyncReport>;
  /** Ends when the server does not speak any more. */
  listen(onState: () => void, signal: AbortSignal): Promise<void>;
  standing(): LocalSyncState;
  setState(state: SyncState): void;
  /** A sync is over. */
  synced(): void;
}

export interface SyncScheduler {
  /** Begins to sync by itself, unless that is not wanted. */
  start(isAuto: boolean): void;
  sync(onProgress: SyncProgressListener, signal: AbortSignal): Promise<SyncReport>;
  /** Something changed here. */
  changed(): void;
  online(): void;
  /** There is an account now, or another, or what was in the way is not any more. */
  resume(): void;
  signedOut(): void;
  /** Runs what is not to be beside a sync. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** The same, but does not wait for the running one to end. */
  preemptSync<T>(work: () => Promise<T>): Promise<T>;
  /** Ends all, and waits until it has. */
  stop(): Promise<void>;
}

/** What another try may mend, without anybody doing anything. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  "busy",
  "disk_full",
  "intermediary",
  "internal",
  // Or a proxy answered in the server's place, with a page.
  "origin_not_allowed",
  "server_damaged",
  "storage_busy",
  "timeout",
  "too_many_attempts",
  "unavailable",
  "unreachable",
]);

type SyncFailure = {
  readonly passes: boolean;
  readonly error: ErrorInfo;
  readonly retryMs: number;
};

export function createSyncScheduler(parts: SyncSchedulerDeps): SyncScheduler {
  const { clock } = parts;
  const network = createMutex(NETWORK_CALLS_WAITING_MAX);
  const stopped = new AbortController();
  let isAuto = false;
  let failures = 0;
  let trouble: SyncFailure | undefined;
  let underWay: AbortController | undefined;
  let progress: SyncProgress | undefined;
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
    return { phase: standing.toSync === 0 && standing.equal ? "inStep" : "pending" };
  }

  /** One sync, however often it has to give way. */
  async function sync(onProgress: SyncProgressListener, signal: AbortSignal): Promise<SyncReport> {
    for (;;) {
      const free = await network.acquire();
      const own = new AbortController();
      try {
        AbortSignal.any([signal, stopped.signal]).throwIfAborted();
        underWay = own;
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
          throw signal.aborted ? clientError("aborted", "the sync was cancelled") : thrown;
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
    const error = toErrorInfo(thrown);
    const passes = TRANSIENT_CODES.has(error.code);
    const retryMs = backoffMs(failures, clock.random());
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
    cancelTimer = clock.after(ms, () => void runAutoSync());
  }

  /** Syncs by itself, and again if it was wanted meanwhile. */
  async function runAutoSync(): Promise<void> {
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
          serverChanged();
        }, signal);
      } catch (thrown) {
        const error = toErrorInfo(thrown);
        if (!signal.aborted && !TRANSIENT_CODES.has(error.code)) {
          // Why, the next sync is told as well.
          void runAutoSync();
          return;
        }
      }
      await sleep(clock, backoffMs(silences, clock.random()), signal);
    }
  }

  function serverChanged(): void {
    if (trouble === undefined || trouble.passes) {
      void runAutoSync();
    }
  }

  async function exclusively<T>(work: () => Promise<T>): Promise<T> {
    const free = await network.acquire();
    try {
      return await work();
    } finally {
      free();
      tell();
    }
  }

  return {
    start(wanted) {
      const isNew = wanted && !isAuto;
      isAuto ||= wanted;
      tell();
      if (isNew && parts.standing().hasAccount) {
        void runAutoSync();
        listen();
      }
    },
    sync,
    changed() {
      tell();
      const { hasAccount, toSync } = parts.standing();
      if (hasAccount && toSync > 0 && trouble === undefined) {
        schedule(DEBOUNCE_MS);
      }
    },
    online() {
      if (trouble === undefined || trouble.passes) {
        failures = 0;
        void runAutoSync();
      }
    },
    resume() {
      failures = 0;
      trouble = undefined;
      tell();
      void runAutoSync();
    },
    signedOut() {
      cancelTimer();
      listening?.abort();
      trouble = undefined;
      tell();
    },
    exclusively,
    preemptSync(work) {
      underWay?.abort();
      return exclusively(work);
    },
    async stop() {
      cancelTimer();
      stopped.abort();
      await network.acquire();
    },
  };
}
