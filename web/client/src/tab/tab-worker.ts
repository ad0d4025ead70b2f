/**
 * A tab's worker, which has the file or waits for it.
 *
 * Invariants:
 * - While the tab lives it has a worker; a worker that ends is replaced, but not more often than
 *   {@link RESTARTS_COUNT_MAX} times in a minute.
 * - If the code of the first worker cannot be loaded, that is reported at once: it would be
 *   missing the next time, too.
 * - Messages of a former worker are ignored.
 */
import type { ErrorInfo, FileKey } from "../api.js";
import { onHolderEnd, type LivenessLocks } from "../shared/liveness.js";
import {
  livenessLock,
  newPeerId,
  type TabMessage,
  type WorkerEvent,
  type WorkerMessage,
} from "../shared/tab-messages.js";
import type { TimeSource } from "../shared/time-source.js";
import type { WorkerSource } from "./worker-source.js";

/** The pause before a worker is replaced, unless it is the first one to end in a minute. */
const RESTART_MS = 500;
/** A worker that ends more often in a minute is not started again. */
const RESTARTS_COUNT_MAX = 10;
const RESTARTS_MS = 60_000;
/** The time limit for a worker to release the file. */
const CLOSE_MS_MAX = 5_000;

export interface TabWorkerDeps {
  /** The database's name. */
  readonly name: string;
  readonly tab: string;
  readonly key: FileKey | undefined;
  readonly workers: WorkerSource;
  /** The address of the wasm, if it is not in the worker's folder. */
  readonly wasm: string | undefined;
  readonly clock: TimeSource;
  readonly locks: LivenessLocks | undefined;
  readonly onAnswer: (message: TabMessage) => void;
  /** Called when the tab cannot get a leader. */
  readonly onFailed: (error: ErrorInfo) => void;
}

interface RunningWorker {
  readonly id: string;
  readonly port: Worker;
  /** Aborted when the tab ends the worker. */
  readonly over: AbortController;
}

export class TabWorker {
  readonly #deps: TabWorkerDeps;
  readonly #ended = new AbortController();
  /** The times at which workers ended that had to be replaced. */
  readonly #restartsMs: number[] = [];
  #worker: RunningWorker | undefined;
  /** Whether a worker's code has been loaded. */
  #hasRun = false;
  #key: FileKey | undefined;

  constructor(deps: TabWorkerDeps) {
    this.#deps = deps;
    this.#key = deps.key;
  }

  /** Aborted when no more workers may start. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Returns the port of the running worker, if this is its id. */
  portOf(id: string): Worker | undefined {
    return id === this.#worker?.id ? this.#worker.port : undefined;
  }

  start(): void {
    const { name, tab, workers, locks, wasm } = this.#deps;
    const id = newPeerId();
    let port: Worker;
    try {
      port = workers.start();
    } catch (thrown) {
      this.#fail(thrown instanceof Error ? thrown.message : String(thrown));
      return;
    }
    this.#worker = { id, port, over: new AbortController() };
    port.onmessage = (event: MessageEvent<WorkerEvent>) => this.#handleEvent(id, event.data);
    port.onerror = (event) => {
      // The worker's code could not be loaded, or threw an error that was not caught.
      event.preventDefault();
      this.#replace(id, event.message || "its code could not be loaded");
    };
    this.#post({
      kind: "start",
      name,
      tab,
      worker: id,
      hasLocks: locks !== undefined,
      ...(wasm === undefined ? {} : { wasm }),
      ...(this.#key === undefined ? {} : { key: this.#key }),
    });
  }

  /** Sets the key that opens the file from now on. */
  rekey(key: FileKey | null): void {
    this.#key = key ?? undefined;
    this.#post({ kind: "key", key });
  }

  /** Waits until the worker has released the file, but only up to {@link CLOSE_MS_MAX}. */
  releaseFile(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#worker === undefined) {
        resolve();
      }
      this.ended.addEventListener("abort", () => resolve());
      this.#deps.clock.after(CLOSE_MS_MAX, resolve);
      this.#post({ kind: "close" });
    });
  }

  /** Ends the worker; no other one starts. */
  end(): void {
    this.#ended.abort();
    this.terminate();
  }

  /** Ends the worker at once; another one may be started. */
  terminate(): void {
    this.#worker?.over.abort();
    this.#worker?.port.terminate();
    this.#worker = undefined;
  }

  #post(message: WorkerMessage): void {
    this.#worker?.port.postMessage(message);
  }

  #handleEvent(id: string, message: WorkerEvent): void {
    if (id !== this.#worker?.id) {
      return;
    }
    this.#hasRun = true;
    switch (message.kind) {
      case "ready":
        this.#watch(this.#worker);
        break;
      case "failed":
        this.#deps.onFailed(message.error);
        break;
      case "broken":
        this.#replace(id, message.error.message);
        break;
      case "closed":
        this.#ended.abort();
        break;
      default:
        this.#deps.onAnswer(message);
    }
  }

  #watch({ id, over }: RunningWorker): void {
    const { locks, name } = this.#deps;
    onHolderEnd(locks, livenessLock(name, id), over.signal, () => this.#replace(id, "it ended"));
  }

  /** Starts another worker in place of one that has ended, or can no longer be trusted. */
  #replace(id: string, why: string): void {
    if (id !== this.#worker?.id || this.ended.aborted) {
      return;
    }
    this.terminate();
    if (!this.#hasRun) {
      this.#fail(why);
      return;
    }
    const { clock } = this.#deps;
    const nowMs = clock.now();
    this.#restartsMs.push(nowMs);
    const recent = this.#restartsMs.filter((atMs) => nowMs - atMs < RESTARTS_MS).length;
    if (recent > RESTARTS_COUNT_MAX) {
      const message = `the worker ended ${recent} times: ${why}`;
      this.#deps.onFailed({ code: "engine_unavailable", message });
    } else {
      const cancel = clock.after(recent === 1 ? 0 : RESTART_MS, () => this.start());
      this.ended.addEventListener("abort", cancel);
    }
  }

  #fail(why: string): void {
    const message = `cannot start the worker: ${why}; ${this.#deps.workers.describe()}`;
    this.#deps.onFailed({ code: "engine_unavailable", message });
  }
}
