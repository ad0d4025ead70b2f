/**
 * Runs automatic syncs: after a pause, or at once.
 *
 * Invariants:
 * - One sync runs at a time; requests during a sync cause one more after it.
 * - There is one timer at most: a later {@link AutoSync.schedule} replaces an earlier one.
 * - Nothing begins before {@link AutoSync.enable}, without an account, or after the end.
 */
import type { TimeSource } from "../../shared/time-source.js";

export interface AutoSyncDeps {
  readonly clock: TimeSource;
  /** Aborted when no more syncs may begin. */
  readonly stopped: AbortSignal;
  hasAccount(): boolean;
  sync(): Promise<unknown>;
}

export class AutoSync {
  readonly #deps: AutoSyncDeps;
  #isEnabled = false;
  #isWanted = false;
  #isRunning = false;
  #cancelTimer = (): void => undefined;

  constructor(deps: AutoSyncDeps) {
    this.#deps = deps;
  }

  get isEnabled(): boolean {
    return this.#isEnabled;
  }

  enable(): void {
    this.#isEnabled = true;
  }

  schedule(ms: number): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#deps.clock.after(ms, () => void this.run());
  }

  cancel(): void {
    this.#cancelTimer();
  }

  /** Syncs, and again if another sync was requested in the meantime. It never rejects. */
  async run(): Promise<void> {
    this.#cancelTimer();
    this.#isWanted = true;
    if (this.#isRunning || !this.#isEnabled || this.#deps.stopped.aborted) {
      return;
    }
    this.#isRunning = true;
    try {
      while (this.#isWanted && this.#deps.hasAccount()) {
        this.#isWanted = false;
        await this.#deps.sync();
      }
    } catch {
      // The scheduler has recorded the error, and scheduled the next try if there is one.
    } finally {
      this.#isRunning = false;
      this.#isWanted = false;
    }
  }
}
