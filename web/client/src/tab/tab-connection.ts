/**
 * A tab's connection to its database: its worker, which has the file or waits for it; and the
 * channels through which the tab finds the leader and receives its answers.
 *
 * Invariants:
 * - A tab holds its liveness lock before it sends anything, so that a leader notices its end.
 * - While its page is frozen, the tab has neither a worker nor a leader.
 *
 * Not here: workers that end → `tab-worker.ts`. Messages to the leader → `leader-link.ts`.
 */
import type { FileKey } from "../api.js";
import { holdLock } from "../shared/liveness.js";
import {
  VERSION,
  allChannel,
  livenessLock,
  peerChannel,
  type BroadcastMessage,
  type LeaderStatus,
  type TabMessage,
} from "../shared/tab-messages.js";
import { LeaderLink, type LeaderListener } from "./leader-link.js";
import { TabWorker, type TabWorkerDeps } from "./tab-worker.js";

export interface TabConnectionDeps extends TabWorkerDeps {
  readonly onLeader: LeaderListener;
  readonly onStatus: (status: LeaderStatus) => void;
  readonly onChanged: (tables: readonly string[]) => void;
  readonly onRekeyed: (key: FileKey | null) => void;
}

export class TabConnection {
  readonly #deps: TabConnectionDeps;
  readonly #name: string;
  readonly #all: BroadcastChannel;
  readonly #answers: BroadcastChannel;
  readonly #worker: TabWorker;
  readonly #link: LeaderLink;
  #stopWatchingPage = (): void => undefined;
  #closing: Promise<void> | undefined;

  private constructor(deps: TabConnectionDeps) {
    const { tab, locks } = deps;
    this.#deps = deps;
    // Without locks, tabs cannot share: each tab uses a name of its own.
    this.#name = locks === undefined ? `${deps.name}:${tab}` : deps.name;
    const name = this.#name;
    this.#all = new BroadcastChannel(allChannel(name));
    this.#answers = new BroadcastChannel(peerChannel(name, tab));
    this.#worker = new TabWorker({ ...deps, name });
    this.#link = new LeaderLink({
      name,
      ownPort: (worker) => this.#worker.portOf(worker),
      onLeader: deps.onLeader,
    });
  }

  /** Finds the leader, or becomes it. */
  static async open(deps: TabConnectionDeps): Promise<TabConnection> {
    const connection = new TabConnection(deps);
    const { locks, tab } = deps;
    if (locks !== undefined) {
      const lock = livenessLock(connection.#name, tab);
      await holdLock(locks, lock, connection.#worker.ended);
    }
    connection.#listen();
    return connection;
  }

  /** Closes the connection: called by the page, or because the database is deleted. */
  close(): Promise<void> {
    this.#closing ??= this.#closeOnce();
    return this.#closing;
  }

  async #closeOnce(): Promise<void> {
    this.#stopWatchingPage();
    await this.#worker.releaseFile();
    this.#worker.end();
    this.#link.close();
    [this.#all, this.#answers].forEach((channel) => channel.close());
  }

  #listen(): void {
    this.#all.onmessage = (event: MessageEvent<BroadcastMessage>) =>
      this.#handleBroadcast(event.data);
    this.#answers.onmessage = (event: MessageEvent<TabMessage>) => this.#deps.onAnswer(event.data);
    this.#begin();
    this.#stopWatchingPage = onPageSuspend(
      () => {
        // The worker freezes at once, too, so it cannot be asked to release the file.
        this.#worker.terminate();
        this.#link.close();
      },
      () => this.#begin(),
    );
  }

  #begin(): void {
    this.#worker.start();
    this.#all.postMessage({ kind: "findLeader" } satisfies BroadcastMessage);
  }

  #handleBroadcast(message: BroadcastMessage): void {
    switch (message.kind) {
      case "findLeader":
        break;
      case "leader":
        this.#leaderFound(message.leader, message.version);
        break;
      case "changed":
        this.#deps.onChanged(message.tables);
        break;
      case "rekeyed":
        this.#deps.onRekeyed(message.key);
        this.#worker.rekey(message.key);
        break;
      case "deleted":
        this.#deps.onFailed({
          code: "deleted",
          message: `the database ${this.#name} was deleted`,
        });
        void this.close();
        break;
      case "status":
        if (message.leader === this.#link.leader) {
          this.#deps.onStatus(message.status);
        }
        break;
    }
  }

  #leaderFound(leader: string, version: number): void {
    if (version === VERSION) {
      this.#link.open(leader);
    } else {
      const message = "another tab runs a different version of this page: reload both tabs";
      this.#deps.onFailed({ code: "version_mismatch", message });
    }
  }
}

/**
 * Calls `sleep` and `wake`: a page that is frozen, or in the back/forward cache, cannot serve the
 * other tabs.
 */
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
