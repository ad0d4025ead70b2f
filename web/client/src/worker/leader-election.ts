/**
 * A worker's way to the file: it waits for the lock, opens the file, serves the tabs, and gives all
 * free when it is told to.
 *
 * Invariants:
 * - The file is open only while this worker holds the database's lock.
 * - Whoever waits is granted the lock when its holder ends, however it ends: nobody polls.
 */
import type { FileKey } from "../api.js";
import { sleep, systemTimeSource, type TimeSource } from "../shared/time-source.js";
import { toErrorInfo, toWarrenError } from "../shared/errors.js";
import type { EngineLoader } from "./engine-loader.js";
import { openReplicaFile, type ReplicaFile } from "./file/replica-file.js";
import { createMessageQueue, type MessageQueue } from "./message-queue.js";
import { allChannel, livenessLock, leaderLock, peerChannel } from "../shared/tab-messages.js";
import type {
  WorkerEvent,
  LeaderStatus,
  WorkerStart,
  BroadcastMessage,
  LeaderMessage,
} from "../shared/tab-messages.js";
import { Leader } from "./leader.js";

/** A killed leader's file handles are freed a moment after its lock. */
const STORAGE_BUSY_MS_MAX = 10_000;
const STORAGE_BUSY_PAUSE_MS = 20;
/** Until a worker that does not own the file gets the engine ready. */
const PRELOAD_MS = 1_000;
/** Until a worker that could not open the file, for a passing reason, tries again. */
const RETRY_MS = 1_000;
/** Where the browser says that it is online, a fetch that fails so often is not waited for. */
const FETCHES_COUNT_MAX = 3;

const NO_OPFS =
  "this browser keeps no files for this page (a private window?): the database is in " +
  "memory, and lost when the tab that holds it closes";
const NO_LOCKS =
  "this browser cannot share a file between tabs (the page is not in a secure " +
  "context?): the database is in memory, for this tab alone, and lost when it closes";

export interface LeaderCandidateDeps {
  readonly start: WorkerStart;
  readonly engines: EngineLoader;
  readonly locks: Pick<LockManager, "request" | "query"> | undefined;
  post(message: WorkerEvent, transfer: readonly ArrayBuffer[]): void;
  readonly clock?: TimeSource;
  /** Tests see to it that nothing is heard of a dead worker. */
  readonly channel?: (name: string) => BroadcastChannel;
}

export interface LeaderCandidate {
  /** A call of this worker's own tab. */
  handleCall(message: LeaderMessage): void;
  online(): void;
  /** The file has another key from here on, or none. */
  rekey(key: FileKey | null): void;
  /** Gives the file free, or does not wait for it any more. */
  close(): Promise<void>;
}

interface OpenedReplica {
  readonly file: ReplicaFile;
  readonly storage: LeaderStatus["storage"];
  readonly warning?: string;
}

export function createLeaderCandidate(parts: LeaderCandidateDeps): LeaderCandidate {
  const { start, locks, engines } = parts;
  const clock = parts.clock ?? systemTimeSource;
  const channel = parts.channel ?? ((name: string) => new BroadcastChannel(name));
  /** Aborted when this worker is no longer to hold the file, or to wait for it. */
  const claimed = new AbortController();
  let { key } = start;
  /** One after the other, while the browser said that it was online. */
  let fetchesFailed = 0;
  let present: { readonly owner: Leader; readonly calls: MessageQueue<LeaderMessage> } | undefined;

  async function campaign(signal: AbortSignal): Promise<void> {
    const cancelPreload = clock.after(PRELOAD_MS, () => void engines.preload());
    try {
      while (!signal.aborted) {
        const isOver = await tryBecomeLeader(signal);
        if (isOver) {
          return;
        }
        await sleep(clock, RETRY_MS, signal);
      }
    } finally {
      cancelPreload();
    }
  }

  /** Whether there is nothing to try again. */
  async function tryBecomeLeader(signal: AbortSignal): Promise<boolean> {
    try {
      if (locks === undefined) {
        await lead(signal);
      } else {
        let owning: Promise<void> | undefined;
        const granted = locks.request(leaderLock(start.name), { signal }, () => {
          owning = signal.aborted ? Promise.resolve() : lead(signal);
          return owning;
        });
        // Chromium never settles a request that is aborted before it has looked at it.
        await Promise.race([granted, untilAborted(signal).then(() => owning)]);
      }
      return true;
    } catch (thrown) {
      if (signal.aborted) {
        return true;
      }
      const error = toErrorInfo(thrown);
      if (mayPass(error.code)) {
        return false;
      }
      parts.post({ kind: "failed", error }, []);
      return true;
    }
  }

  function mayPass(code: string): boolean {
    if (code !== "unreachable") {
      return code === "storage_busy";
    }
    fetchesFailed = navigator.onLine === false ? 0 : fetchesFailed + 1;
    return fetchesFailed < FETCHES_COUNT_MAX;
  }

  async function lead(signal: AbortSignal): Promise<void> {
    const opened = await open(signal);
    try {
      await serve(opened, signal);
    } finally {
      present = undefined;
      opened.file.close();
    }
  }

  async function open(signal: AbortSignal): Promise<OpenedReplica> {
    const engine = await engines.load();
    if (!start.hasLocks) {
      const file = await openReplicaFile(engine, start.name, undefined, true);
      return { file, storage: "memory", warning: NO_LOCKS };
    }
    const untilMs = clock.now() + STORAGE_BUSY_MS_MAX;
    for (;;) {
      try {
        const file = await openReplicaFile(engine, start.name, key, false);
        return { file, storage: "opfs" };
      } catch (thrown) {
        const error = toWarrenError(thrown);
        if (error.code === "storage_unavailable") {
          const file = await openReplicaFile(engine, start.name, undefined, true);
          return { file, storage: "memory", warning: NO_OPFS };
        }
        if (error.code !== "storage_busy" || clock.now() > untilMs || signal.aborted) {
          throw error;
        }
        await sleep(clock, STORAGE_BUSY_PAUSE_MS, signal);
      }
    }
  }

  async function serve(opened: OpenedReplica, signal: AbortSignal): Promise<void> {
    const all = channel(allChannel(start.name));
    const calls = channel(peerChannel(start.name, start.worker));
    const tabs = new Map<string, BroadcastChannel>();
    const ended = new AbortController();
    const living = await livePeers();
    const channelOf = (tab: string): BroadcastChannel => {
      const known = tabs.get(tab) ?? channel(peerChannel(start.name, tab));
      tabs.set(tab, known);
      return known;
    };
    const mine = new Leader({
      ...opened,
      id: start.worker,
      clock,
      sendToTab(tab, message, transfer) {
        if (tab === start.tab) {
          parts.post(message, transfer);
        } else {
          channelOf(tab).postMessage(message);
        }
      },
      broadcast: (message) => all.postMessage(message),
      onTabGone: (tab, onGone) => {
        watch(tab, ended.signal, () => {
          tabs.get(tab)?.close();
          tabs.delete(tab);
          onGone();
        });
      },
      broken: (error) => parts.post({ kind: "broken", error }, []),
    });
    mine.keepResultsOf([...living, start.tab]);
    const asked = createMessageQueue<LeaderMessage>((message) => mine.handleMessage(message));
    calls.onmessage = (event: MessageEvent<LeaderMessage>) => asked.enqueue(event.data);
    all.onmessage = (event: MessageEvent<BroadcastMessage>) => {
      if (event.data.kind === "where") {
        mine.announce();
      }
    };
    present = { owner: mine, calls: asked };
    mine.announce();
    await untilAborted(signal);
    try {
      await mine.stop();
    } finally {
      ended.abort();
      asked.close();
      [all, calls, ...tabs.values()].forEach((one) => one.close());
    }
  }

  /** Who holds a life lock of this database. */
  async function livePeers(): Promise<string[]> {
    const held = (await locks?.query())?.held ?? [];
    const prefix = livenessLock(start.name, "");
    return held.flatMap(({ name }) =>
      name?.startsWith(prefix) === true ? [name.slice(prefix.length)] : [],
    );
  }

  function watch(tab: string, signal: AbortSignal, onGone: () => void): void {
    if (locks === undefined || tab === start.tab) {
      return;
    }
    const over = locks.request(livenessLock(start.name, tab), { signal }, onGone);
    // Aborted: this worker is not the leader any more.
    over.catch(() => undefined);
  }

  const claiming = campaign(claimed.signal);

  return {
    handleCall(message) {
      // What comes before it is the leader, or after, is asked again of the next one.
      present?.calls.enqueue(message);
    },
    online: () => present?.owner.online(),
    rekey(changed) {
      key = changed ?? undefined;
    },
    async close() {
      claimed.abort();
      await claiming;
    },
  };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    }
    signal.addEventListener("abort", () => resolve());
  });
}
