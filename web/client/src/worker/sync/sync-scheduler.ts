/**
 * When to sync, and how it stands: by itself after changes here and there, when the network is
 * back, after a sign-in; with growing pauses while the server is away; and when somebody asks.
 *
 * Invariants:
 * - One sync at a time; what asks meanwhile gets one that began after it asked.
 * - A refusal that only somebody can change stops the trying, until somebody asks or signs in.
 * - What needs the file without a sync interrupts it; it goes on after that from where it was.
 *
 * Not here: the timer → `auto-sync.ts`. The server's events → `server-listener.ts`. What the state
 * is called → `sync-state.ts`.
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

/** Changes that come one after the other go together. */
export const DEBOUNCE_MS = 150;
const NETWORK_CALLS_WAITING_MAX = 1_000;

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

export class SyncScheduler {
  readonly #deps: SyncSchedulerDeps;
  readonly #network = createMutex(NETWORK_CALLS_WAITING_MAX);
  readonly #stopped = new AbortController();
  readonly #autoSync: AutoSync;
  readonly #listener: ServerListener;
  #running: RunningSync | undefined;
  #failure: SyncFailure | undefined;
  /** Since a sync last ended well, or somebody did something. */
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

  /** Begins to sync by itself, unless that is not wanted. */
  start(isAuto: boolean): void {
    const isNew = isAuto && !this.#autoSync.isEnabled;
    if (isNew) {
      this.#autoSync.enable();
    }
    this.#tell();
    if (isNew && this.#deps.standing().hasAccount) {
      void this.#autoSync.run();
      this.#listener.start();
    }
  }

  /** One sync, however often it has to give way. */
  async sync(onProgress: SyncProgressListener, signal: AbortSignal): Promise<SyncReport> {
    const stopped = this.#stopped.signal;
    for (;;) {
      const free = await this.#network.acquire();
      const yielding = new AbortController();
      try {
        AbortSignal.any([signal, stopped]).throwIfAborted();
        const running: RunningSync = { yielding, progress: undefined };
        this.#running = running;
        this.#tell();
        const any = AbortSignal.any([signal, stopped, yielding.signal]);
        const report = await this.#deps.sync((progress) => {
          running.progress = progress;
          this.#tell();
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
        this.#tell();
      }
    }
  }

  /** Something changed here. */
  changed(): void {
    this.#tell();
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

  /** There is an account now, or another, or what was in the way is not any more. */
  resume(): void {
    this.#failuresCount = 0;
    this.#failure = undefined;
    this.#tell();
    void this.#autoSync.run();
  }

  signedOut(): void {
    this.#autoSync.cancel();
    this.#listener.end();
    this.#failure = undefined;
    this.#tell();
  }

  /** Runs what is not to be beside a sync. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const free = await this.#network.acquire();
    try {
      return await work();
    } finally {
      free();
      this.#tell();
    }
  }

  /** The same, but does not wait for the running one to end. */
  preemptSync<T>(work: () => Promise<T>): Promise<T> {
    this.#running?.yielding.abort();
    return this.exclusively(work);
  }

  /** Ends all, and waits until it has. */
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

  /** Whether nothing is in the way that only somebody can change. */
  #mayTry(): boolean {
    return this.#failure === undefined || this.#failure.isTransient;
  }

  #tell(): void {
    this.#deps.setState(syncState(this.#deps.standing(), this.#running, this.#failure));
  }
}
