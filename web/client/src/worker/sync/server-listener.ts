/**
 * Listens to the server's events, and again, with growing pauses, whenever the stream ends.
 *
 * Invariants:
 * - There is one event stream at most.
 * - A refusal that no retry can change ends the listening, until it is started again.
 */
import { toErrorInfo } from "../../shared/errors.js";
import { backoffMs, sleep, type TimeSource } from "../../shared/time-source.js";
import { isTransient } from "./sync-state.js";

export interface ServerListenerDeps {
  readonly clock: TimeSource;
  /** Aborted when the listening must end. */
  readonly stopped: AbortSignal;
  hasAccount(): boolean;
  /** Listens to one stream; ends when the server ends it. */
  listen(onState: () => void, signal: AbortSignal): Promise<void>;
  /** Called when the server has something new. */
  serverChanged(): void;
  /** Called when the server refuses; the next sync gets the reason as well. */
  refused(): void;
}

export class ServerListener {
  readonly #deps: ServerListenerDeps;
  #listening: AbortController | undefined;

  constructor(deps: ServerListenerDeps) {
    this.#deps = deps;
  }

  /** Begins to listen, unless it already does. */
  start(): void {
    const { stopped } = this.#deps;
    if (this.#listening !== undefined || stopped.aborted) {
      return;
    }
    const own = new AbortController();
    this.#listening = own;
    void this.#keepListening(AbortSignal.any([own.signal, stopped])).finally(() => {
      this.#listening = undefined;
    });
  }

  end(): void {
    this.#listening?.abort();
  }

  async #keepListening(signal: AbortSignal): Promise<void> {
    const deps = this.#deps;
    for (let silences = 0; !signal.aborted && deps.hasAccount(); silences += 1) {
      try {
        await deps.listen(() => {
          silences = 0;
          deps.serverChanged();
        }, signal);
      } catch (thrown) {
        if (!signal.aborted && !isTransient(toErrorInfo(thrown))) {
          deps.refused();
          return;
        }
      }
      await sleep(deps.clock, backoffMs(silences, deps.clock.random()), signal);
    }
  }
}
