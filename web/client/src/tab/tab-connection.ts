/**
 * A tab's links: its worker, which waits for the file or owns it; and the channels on which it
 * finds the leader and hears its answers.
 *
 * Invariants:
 * - A tab holds its life lock before it asks anything: so a leader can tell when it is gone.
 * - While the tab lives it has a worker; one that ends is replaced. Where the first one's code
 *   cannot be loaded, that is told at once: it will not be there the next time either.
 */
import type { ErrorInfo, FileKey } from "../api.js";
import type { TimeSource } from "../shared/time-source.js";
import { clientError } from "../shared/errors.js";
import {
  VERSION,
  allChannel,
  livenessLock,
  newPeerId,
  peerChannel,
} from "../shared/tab-messages.js";
import type {
  WorkerEvent,
  LeaderStatus,
  BroadcastMessage,
  LeaderMessage,
  TabMessage,
  WorkerMessage,
} from "../shared/tab-messages.js";
import type { WorkerSource } from "./worker-source.js";

/** Until a worker that ended at once is replaced. */
const RESTART_MS = 500;
/** A worker that ends more often in a minute is not started again. */
const RESTARTS_COUNT_MAX = 10;
const RESTARTS_MS = 60_000;
/** How long a worker may take to give the file free. */
const CLOSE_MS_MAX = 5_000;

export interface TabConnectionDeps {
  readonly name: string;
  readonly tab: string;
  readonly key: FileKey | undefined;
  readonly workers: WorkerSource;
  /** Where the wasm is, if not beside the worker. */
  readonly wasm: string | undefined;
  readonly clock: TimeSource;
  readonly locks: LockManager | undefined;
  /** Another leader, and how it is asked. */
  onOwner(owner: string, post: (message: LeaderMessage) => void, isOwn: boolean): void;
  onStatus(status: LeaderStatus): void;
  onChanged(tables: readonly string[]): void;
  onAnswer(message: TabMessage): void;
  onRekeyed(key: FileKey | null): void;
  /** There will be no leader. */
  onFailed(error: ErrorInfo): void;
}

export interface TabConnection {
  close(): Promise<void>;
}

interface RunningWorker {
  readonly id: string;
  readonly port: Worker;
  /** Aborted when it is ended from here. */
  readonly over: AbortController;
}

/** Finds the leader, or becomes it. */
export async function connectTab(parts: TabConnectionDeps): Promise<TabConnection> {
  const { tab, clock, locks } = parts;
  // Without locks each tab is for itself.
  const name = locks === undefined ? `${parts.name}:${tab}` : parts.name;
  const ended = new AbortController();
  const all = new BroadcastChannel(allChannel(name));
  const answers = new BroadcastChannel(peerChannel(name, tab));
  let worker: RunningWorker | undefined;
  /** Whether a worker's code has been loaded. */
  let hasRun = false;
  let owner: { readonly id: string; readonly close: () => void } | undefined;
  const restarts: number[] = [];
  let key = parts.key;

  function handleBroadcast(message: BroadcastMessage): void {
    switch (message.kind) {
      case "where":
        break;
      case "owner":
        leaderFound(message.owner, message.version);
        break;
      case "changed":
        parts.onChanged(message.tables);
        break;
      case "rekeyed":
        key = message.key ?? undefined;
        parts.onRekeyed(message.key);
        postToWorker({ kind: "key", key: message.key });
        break;
      case "deleted":
        parts.onFailed({ code: "deleted", message: `the database ${name} was deleted` });
        void close();
        break;
      case "status":
        if (message.owner === owner?.id) {
          parts.onStatus(message.status);
        }
        break;
    }
  }

  function leaderFound(id: string, version: number): void {
    if (version !== VERSION) {
      const message = "another tab has another version of this page: load both anew";
      parts.onFailed({ code: "other_version", message });
      return;
    }
    if (id === owner?.id) {
      return;
    }
    owner?.close();
    if (id === worker?.id) {
      const { port } = worker;
      owner = { id, close: () => undefined };
      parts.onOwner(id, (message) => port.postMessage(message), true);
    } else {
      const channel = new BroadcastChannel(peerChannel(name, id));
      owner = { id, close: () => channel.close() };
      parts.onOwner(id, (message) => channel.postMessage(message), false);
    }
  }

  function startWorker(): void {
    const id = newPeerId();
    let port: Worker;
    try {
      port = parts.workers.start();
    } catch (thrown) {
      unloadable(thrown instanceof Error ? thrown.message : String(thrown));
      return;
    }
    worker = { id, port, over: new AbortController() };
    port.onmessage = (event: MessageEvent<WorkerEvent>) => handleWorkerEvent(id, event.data);
    port.onerror = (event) => {
      // Its code could not be loaded, or threw where nobody caught it.
      event.preventDefault();
      workerEnded(id, event.message || "its code could not be loaded");
    };
    const given = key === undefined ? {} : { key };
    const wasm = parts.wasm === undefined ? {} : { wasm: parts.wasm };
    const hasLocks = locks !== undefined;
    postToWorker({ kind: "start", name, tab, worker: id, hasLocks, ...wasm, ...given });
  }

  function postToWorker(message: WorkerMessage): void {
    worker?.port.postMessage(message);
  }

  function handleWorkerEvent(id: string, message: WorkerEvent): void {
    if (id !== worker?.id) {
      return;
    }
    hasRun = true;
    switch (message.kind) {
      case "ready":
        watch(id, worker.over.signal);
        break;
      case "failed":
        parts.onFailed(message.error);
        break;
      case "broken":
        workerEnded(id, message.error.message);
        break;
      case "closed":
        ended.abort();
        break;
      default:
        parts.onAnswer(message);
    }
  }

  /** The worker's life lock is granted to others when it has ended. */
  function watch(id: string, signal: AbortSignal): void {
    const over = locks?.request(livenessLock(name, id), { signal }, () =>
      workerEnded(id, "it ended"),
    );
    // Aborted: it was ended from here.
    over?.catch(() => undefined);
  }

  function workerEnded(id: string, why: string): void {
    if (id !== worker?.id || ended.signal.aborted) {
      return;
    }
    endWorker();
    if (!hasRun) {
      unloadable(why);
      return;
    }
    const nowMs = clock.now();
    restarts.push(nowMs);
    const recent = restarts.filter((atMs) => nowMs - atMs < RESTARTS_MS).length;
    if (recent > RESTARTS_COUNT_MAX) {
      const message = `the worker has ended ${recent} times: ${why}`;
      parts.onFailed({ code: "engine_unavailable", message });
    } else {
      const cancel = clock.after(recent === 1 ? 0 : RESTART_MS, startWorker);
      ended.signal.addEventListener("abort", cancel);
    }
  }

  function unloadable(why: string): void {
    const message = `the worker cannot be started: ${why}; ${parts.workers.describe()}`;
    parts.onFailed({ code: "engine_unavailable", message });
  }

  function endWorker(): void {
    worker?.over.abort();
    worker?.port.terminate();
    worker = undefined;
  }

  if (locks !== undefined) {
    await holdLock(locks, livenessLock(name, tab), ended.signal);
  }
  all.onmessage = (event: MessageEvent<BroadcastMessage>) => handleBroadcast(event.data);
  answers.onmessage = (event: MessageEvent<TabMessage>) => parts.onAnswer(event.data);
  const begin = (): void => {
    startWorker();
    all.postMessage({ kind: "where" } satisfies BroadcastMessage);
  };
  begin();
  const stopSleep = onPageSuspend(() => {
    // The worker sleeps as well, and at once, so it cannot be asked to give the file free.
    endWorker();
    owner?.close();
    owner = undefined;
  }, begin);

  let closing: Promise<void> | undefined;
  async function closeOnce(): Promise<void> {
    stopSleep();
    await new Promise<void>((resolve) => {
      if (worker === undefined) {
        resolve();
      }
      ended.signal.addEventListener("abort", () => resolve());
      clock.after(CLOSE_MS_MAX, resolve);
      postToWorker({ kind: "close" });
    });
    ended.abort();
    endWorker();
    owner?.close();
    [all, answers].forEach((channel) => channel.close());
  }
  /** By the page, or because the database is deleted. */
  function close(): Promise<void> {
    closing ??= closeOnce();
    return closing;
  }

  return { close };
}

/** Takes a lock and keeps it until the signal; the page's end frees it, too. */
function holdLock(locks: LockManager, name: string, until: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const kept = locks.request(name, () => {
      resolve();
      return new Promise<void>((free) => until.addEventListener("abort", () => free()));
    });
    kept.catch((thrown: unknown) => {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      reject(clientError("internal", `no lock for this tab: ${why}`));
    });
  });
}

/** A page that is frozen, or kept to go back to, cannot serve the other tabs. */
function onPageSuspend(sleep: () => void, wake: () => void): () => void {
  if (typeof document === "undefined") {
    return () => undefined;
  }
  const over = new AbortController();
  const { signal } = over;
  const hide = (event: PageTransitionEvent): void => (event.persisted ? sleep() : undefined);
  const show = (event: PageTransitionEvent): void => (event.persisted ? wake() : undefined);
  document.addEventListener("freeze", sleep, { signal });
  document.addEventListener("resume", wake, { signal });
  addEventListener("pagehide", hide, { signal });
  addEventListener("pageshow", show, { signal });
  return () => over.abort();
}
