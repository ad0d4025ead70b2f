/**
 * Listens to the server's events, and again, with growing pauses, whenever that ends.
 *
 * Invariants:
 * - There is one event stream at most.
 * - A refusal that no other try can mend ends the listening, until it is started again.
 */
import { toErrorInfo } from "../../shared/errors.js";
import { backoffMs, sleep, type TimeSource } from "../../shared/time-source.js";
import { isTransient } from "./sync-state.js";

export interface ServerListenerDeps {
  readonly clock: TimeSource;
  /** Aborted when nothing is to be heard any more. */
  readonly stopped: AbortSignal;
  hasAccount(): boolean;
  /** Ends when the server does not speak any more. */
  listen(onState: () => void, signal: AbortSignal): Promise<void>;
  /** The server has something new. */
  serverChanged(): void;
  /** The server refuses; why, the next sync is told as well. */
  refused(): void;
}

export class ServerListener {
  readonly #deps: ServerListenerDeps;
  #listening: AbortController | undefined;

  constructor(deps: ServerListenerDeps) {
    this.#deps = deps;
  }

  /** Begins to listen, unless it does. */
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
