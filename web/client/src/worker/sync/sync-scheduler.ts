/**
 * Decides when to sync, and keeps the state of the sync. Syncs are automatic after changes here
 * and on the server, when the network is back, and after a sign-in; with growing pauses while the
 * server is away; and on request.
 *
 * Invariants:
 * - One sync runs at a time; a request during a sync gets one that begins after the request.
 * - A refusal that only a person can change stops the retries, until a request or a sign-in.
 * - Work that needs the file without a sync interrupts it; the sync then resumes where it was.
 *
 * Not here: the timer → `auto-sync.ts`. The server's events → `server-listener.ts`. The names of
 * the states → `sync-state.ts`.
 */
import { WarrenError, type SyncProgress, type SyncReport, type SyncState } from "../../api.js";
import { toErrorInfo } from "../../shared/errors.js";
import { backoffMs, type TimeSource } from "../../shared/time-source.js";
import { createMutex } from "../mutex.js";
import { AutoSync } from "./auto-sync.js";
import { ServerListener } from "./server-listener.js";
import {
  isTransient,
  syncState,
  type LocalSyncState,
  type RunningSync,
  type SyncFailure,
} from "./sync-state.js";

/**
 * The pause before a sync after a change, so that changes in quick succession are sent together.
 */
export const DEBOUNCE_MS = 150;
const NETWORK_CALLS_WAITING_MAX = 1_000;

type SyncProgressListener = (progress: SyncProgress) => void;

export interface SyncSchedulerDeps {
  readonly clock: TimeSource;
  sync(onProgress: SyncProgressListener, signal: AbortSignal): Promise<SyncReport>;
  /** Listens to one stream of events; ends when the server ends it. */
  listen(onState: () => void, signal: AbortSignal): Promise<void>;
  standing(): LocalSyncState;
  setState(state: SyncState): void;
  /** Called when a sync has ended. */
  synced(): void;
}

export class SyncScheduler {
  readonly #deps: SyncSchedulerDeps;
  readonly #network = createMutex(NETWORK_CALLS_WAITING_MAX);
  readonly #stopped = new AbortController();
  readonly #autoSync: AutoSync;
  readonly #listener: ServerListener;
  #running: RunningSync | undefined;
  #failure: SyncFailure | undefined;
  /** The number of failures since the last successful sync, or the last action of the user. */
  #failuresCount = 0;

  constructor(deps: SyncSchedulerDeps) {
    this.#deps = deps;
    const { clock } = deps;
    const stopped = this.#stopped.signal;
    const hasAccount = (): boolean => deps.standing().hasAccount;
    this.#autoSync = new AutoSync({
      clock,
      stopped,
      hasAccount,
      sync: () => this.sync(() => undefined, stopped),
    });
    this.#listener = new ServerListener({
      clock,
      stopped,
      hasAccount,
      listen: (onState, signal) => deps.listen(onState, signal),
      serverChanged: () => {
        if (this.#mayTry()) {
          void this.#autoSync.run();
        }
      },
      refused: () => void this.#autoSync.run(),
    });
  }

  /** Starts the automatic syncs, unless they are turned off. */
  start(isAuto: boolean): void {
    const isNew = isAuto && !this.#autoSync.isEnabled;
    if (isNew) {
      this.#autoSync.enable();
    }
    this.#publishState();
    if (isNew && this.#deps.standing().hasAccount) {
      void this.#autoSync.run();
      this.#listener.start();
    }
  }

  /** Runs one sync, however often it has to yield. */
  async sync(onProgress: SyncProgressListener, signal: AbortSignal): Promise<SyncReport> {
    const stopped = this.#stopped.signal;
    for (;;) {
      const free = await this.#network.acquire();
      const yielding = new AbortController();
      try {
        AbortSignal.any([signal, stopped]).throwIfAborted();
        const running: RunningSync = { yielding, progress: undefined };
        this.#running = running;
        this.#publishState();
        const any = AbortSignal.any([signal, stopped, yielding.signal]);
        const report = await this.#deps.sync((progress) => {
          running.progress = progress;
          this.#publishState();
          onProgress(progress);
        }, any);
        this.#succeeded();
        return report;
      } catch (thrown) {
        const isCancelled = signal.aborted || stopped.aborted;
        const hasYielded = yielding.signal.aborted && !isCancelled;
        if (!hasYielded) {
          this.#failed(thrown, isCancelled);
          throw signal.aborted ? new WarrenError("cancelled", "the sync was canceled") : thrown;
        }
      } finally {
        this.#running = undefined;
        free();
        this.#deps.synced();
        this.#publishState();
      }
    }
  }

  /** Called after a change in this file. */
  changed(): void {
    this.#publishState();
    const { hasAccount, unsyncedCount } = this.#deps.standing();
    if (hasAccount && unsyncedCount > 0 && this.#failure === undefined) {
      this.#autoSync.schedule(DEBOUNCE_MS);
    }
  }

  online(): void {
    if (this.#mayTry()) {
      this.#failuresCount = 0;
      void this.#autoSync.run();
    }
  }

  /** Syncs again: there is an account now, or another one, or an obstacle is gone. */
  resume(): void {
    this.#failuresCount = 0;
    this.#failure = undefined;
    this.#publishState();
    void this.#autoSync.run();
  }

  signedOut(): void {
    this.#autoSync.cancel();
    this.#listener.end();
    this.#failure = undefined;
    this.#publishState();
  }

  /** Runs work that must not overlap a sync. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const free = await this.#network.acquire();
    try {
      return await work();
    } finally {
      free();
      this.#publishState();
    }
  }

  /** Runs work like {@link exclusively}, but interrupts the running sync instead of waiting. */
  preemptSync<T>(work: () => Promise<T>): Promise<T> {
    this.#running?.yielding.abort();
    return this.exclusively(work);
  }

  /** Ends everything, and waits until it has ended. */
  async stop(): Promise<void> {
    this.#autoSync.cancel();
    this.#stopped.abort();
    await this.#network.acquire();
  }

  #succeeded(): void {
    this.#failuresCount = 0;
    this.#failure = undefined;
    if (this.#autoSync.isEnabled) {
      this.#listener.start();
    }
  }

  #failed(thrown: unknown, wasCancelled: boolean): void {
    if (wasCancelled) {
      return;
    }
    const error = toErrorInfo(thrown);
    const retryMs = backoffMs(this.#failuresCount, this.#deps.clock.random());
    this.#failuresCount += 1;
    this.#failure = { isTransient: isTransient(error), error, retryMs };
    if (this.#failure.isTransient) {
      this.#autoSync.schedule(retryMs);
    } else if (error.code === "invalid_token") {
      this.#listener.end();
    }
  }

  /** Whether the last failure, if any, is one that a retry can get past. */
  #mayTry(): boolean {
    return this.#failure === undefined || this.#failure.isTransient;
  }

  #publishState(): void {
    this.#deps.setState(syncState(this.#deps.standing(), this.#running, this.#failure));
  }
}
