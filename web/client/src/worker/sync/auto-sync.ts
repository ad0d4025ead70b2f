/**
 * Syncs that nobody asked for: after a pause, or at once.
 *
 * Invariants:
 * - One at a time; what is wanted while it runs is one more after it.
 * - There is one timer at most: a later {@link AutoSync.schedule} replaces an earlier one.
 * - Nothing begins before {@link AutoSync.enable}, without an account, or after the end.
 */
import type { TimeSource } from "../../shared/time-source.js";

export interface AutoSyncDeps {
  readonly clock: TimeSource;
  /** Aborted when nothing is to begin any more. */
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

  /** Syncs, and again if that was wanted meanwhile. It never rejects. */
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
      // It is in the state, and the next try is scheduled if there is to be one.
    } finally {
      this.#isRunning = false;
      this.#isWanted = false;
    }
  }
}
