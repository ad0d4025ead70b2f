/**
 * A worker's candidacy for leader: it waits for the lock, opens the file, serves the tabs, and
 * releases everything on request.
 *
 * Invariants:
 * - The file is open only while this worker holds the database's lock.
 * - A waiting worker is granted the lock when the holder ends, however it ends: no worker polls.
 *
 * Not here: the leader's work → `leader.ts`. Its channels → `leader-channels.ts`.
 */
import type { ErrorCode, FileKey } from "../api.js";
import { toErrorInfo } from "../shared/errors.js";
import { livePeers, onHolderEnd, type LivenessLocks } from "../shared/liveness.js";
import {
  leaderLock,
  livenessLock,
  type LeaderMessage,
  type WorkerEvent,
  type WorkerStart,
} from "../shared/tab-messages.js";
import { sleep, systemTimeSource, type TimeSource } from "../shared/time-source.js";
import type { EngineLoader } from "./engine-loader.js";
import { openReplicaOrMemory, type OpenedReplica } from "./file/open-replica.js";
import { LeaderChannels } from "./leader-channels.js";
import { Leader } from "./leader.js";
import { createMessageQueue, type MessageQueue } from "./message-queue.js";

/** The delay before a worker that is not the leader preloads the engine. */
const PRELOAD_MS = 1_000;
/** The delay before a worker that could not open the file, for a passing reason, tries again. */
const RETRY_MS = 1_000;
/**
 * The number of failed fetches, while the browser says that it is online, after which the worker
 * gives up.
 */
const FETCHES_COUNT_MAX = 3;

export interface LeaderCandidateDeps {
  readonly start: WorkerStart;
  readonly engines: EngineLoader;
  readonly locks: LivenessLocks | undefined;
  readonly post: (message: WorkerEvent, transfer: readonly ArrayBuffer[]) => void;
  readonly clock?: TimeSource;
  /** Opens a channel. Tests pass their own, so that messages of a dead worker are dropped. */
  readonly channel?: (name: string) => BroadcastChannel;
}

/** The leader that a candidate has become, and the queue of its calls. */
interface LeaderTerm {
  readonly leader: Leader;
  readonly calls: MessageQueue<LeaderMessage>;
}

export class LeaderCandidate {
  readonly #deps: LeaderCandidateDeps;
  readonly #clock: TimeSource;
  /** Aborted when this worker must no longer hold the file, or wait for it. */
  readonly #claim = new AbortController();
  readonly #campaign: Promise<void>;
  #key: FileKey | undefined;
  /** The number of consecutive failed fetches while the browser said that it was online. */
  #failedFetchesCount = 0;
  #term: LeaderTerm | undefined;

  /** Creates the candidate, which begins to wait for the file at once. */
  constructor(deps: LeaderCandidateDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemTimeSource;
    this.#key = deps.start.key;
    this.#campaign = this.#run(this.#claim.signal);
  }

  /** Handles a call of this worker's own tab. */
  handleCall(message: LeaderMessage): void {
    // Calls that arrive before or after this worker is the leader are sent again to the next
    // leader.
    this.#term?.calls.enqueue(message);
  }

  online(): void {
    this.#term?.leader.online();
  }

  /** Sets the key that the file has from now on, or none. */
  rekey(key: FileKey | null): void {
    this.#key = key ?? undefined;
  }

  /** Releases the file, or stops waiting for it. */
  async close(): Promise<void> {
    this.#claim.abort();
    await this.#campaign;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { engines } = this.#deps;
    const cancelPreload = this.#clock.after(PRELOAD_MS, () => void engines.preload());
    try {
      while (!signal.aborted) {
        const isOver = await this.#tryBecomeLeader(signal);
        if (isOver) {
          return;
        }
        await sleep(this.#clock, RETRY_MS, signal);
      }
    } finally {
      cancelPreload();
    }
  }

  /** Returns whether the candidacy is over, so that there is nothing to try again. */
  async #tryBecomeLeader(signal: AbortSignal): Promise<boolean> {
    const { locks, start } = this.#deps;
    try {
      if (locks === undefined) {
        await this.#lead(signal);
      } else {
        let leading: Promise<void> | undefined;
        const granted = locks.request(leaderLock(start.name), { signal }, () => {
          leading = signal.aborted ? Promise.resolve() : this.#lead(signal);
          return leading;
        });
        // Chromium never settles a request that is aborted before the browser has processed it.
        await Promise.race([granted, untilAborted(signal).then(() => leading)]);
      }
      return true;
    } catch (thrown) {
      if (signal.aborted) {
        return true;
      }
      const error = toErrorInfo(thrown);
      if (this.#mayPass(error.code)) {
        return false;
      }
      this.#deps.post({ kind: "failed", error }, []);
      return true;
    }
  }

  #mayPass(code: ErrorCode): boolean {
    if (code !== "unreachable") {
      return code === "busy";
    }
    this.#failedFetchesCount = navigator.onLine === false ? 0 : this.#failedFetchesCount + 1;
    return this.#failedFetchesCount < FETCHES_COUNT_MAX;
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { engines, start } = this.#deps;
    const { name, hasLocks } = start;
    const engine = await engines.load();
    const options = { name, hasLocks, clock: this.#clock, key: () => this.#key };
    const opened = await openReplicaOrMemory(engine, options, signal);
    try {
      await this.#serve(opened, signal);
    } finally {
      this.#term = undefined;
      opened.file.close();
    }
  }

  async #serve(opened: OpenedReplica, signal: AbortSignal): Promise<void> {
    const { start, locks, post } = this.#deps;
    const openChannel = this.#deps.channel ?? ((name: string) => new BroadcastChannel(name));
    const channels = new LeaderChannels({ start, post, openChannel });
    const ended = new AbortController();
    const living = await livePeers(locks, start.name);
    const leader = new Leader({
      ...opened,
      id: start.worker,
      clock: this.#clock,
      sendToTab: (tab, message, transfer) => channels.sendToTab(tab, message, transfer),
      broadcast: (message) => channels.broadcast(message),
      onTabGone: (tab, onGone) => {
        if (tab === start.tab) {
          // This worker ends with its own tab.
          return;
        }
        onHolderEnd(locks, livenessLock(start.name, tab), ended.signal, () => {
          channels.closeTab(tab);
          onGone();
        });
      },
      broken: (error) => post({ kind: "broken", error }, []),
    });
    leader.keepResultsOf([...living, start.tab]);
    const calls = createMessageQueue<LeaderMessage>((message) => leader.handleMessage(message));
    channels.listen(
      (message) => calls.enqueue(message),
      () => leader.announce(),
    );
    this.#term = { leader, calls };
    leader.announce();
    await untilAborted(signal);
    try {
      await leader.stop();
    } finally {
      ended.abort();
      calls.close();
      channels.close();
    }
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    }
    signal.addEventListener("abort", () => resolve());
  });
}
