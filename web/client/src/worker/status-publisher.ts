/**
 * Publishes the status of the database: keeps the last status of the file, and the last message to
 * the tabs.
 *
 * Invariants:
 * - The tabs receive changes, and no status twice, unless a tab asks for it.
 * - The progress of a sync is sent at intervals, its end at once.
 */
import type { SyncState } from "../api.js";
import type { BroadcastMessage, LeaderStatus } from "../shared/tab-messages.js";
import type { TimeSource } from "../shared/time-source.js";
import { readStatus, type ReplicaFileStatus } from "./file/file-status.js";
import type { ReplicaFile } from "./file/replica-file.js";

/** The shortest interval between two messages to all tabs about the progress of a sync. */
const PROGRESS_MS_MIN = 50;
/** The delay after a change before the status of the file is read; many changes come in a row. */
const REFRESH_MS = 50;

export interface StatusPublisherDeps {
  readonly file: ReplicaFile;
  /** The id of the leader's worker. */
  readonly id: string;
  readonly storage: LeaderStatus["storage"];
  readonly warning?: string;
  readonly clock: TimeSource;
  broadcast(message: BroadcastMessage): void;
}

export class StatusPublisher {
  readonly #deps: StatusPublisherDeps;
  #fileStatus: ReplicaFileStatus;
  #sync: SyncState = { phase: "local" };
  #newConflictsCount = 0;
  /** The last status that was sent to the tabs, as JSON; `#sentMs` is the time. */
  #sentStatus = "";
  #sentMs = 0;
  #cancelRefresh: (() => void) | undefined;

  constructor(deps: StatusPublisherDeps) {
    this.#deps = deps;
    this.#fileStatus = readStatus(deps.file);
  }

  /** The last status that was read from the file. */
  get fileStatus(): ReplicaFileStatus {
    return this.#fileStatus;
  }

  refresh(): void {
    this.#fileStatus = readStatus(this.#deps.file);
    this.#publishChange();
  }

  /** Calls `refresh` soon, once for all the changes until then. */
  scheduleRefresh(refresh: () => void): void {
    this.#cancelRefresh ??= this.#deps.clock.after(REFRESH_MS, () => {
      this.#cancelRefresh = undefined;
      refresh();
    });
  }

  cancelRefresh(): void {
    this.#cancelRefresh?.();
  }

  setSync(state: SyncState): void {
    const isProgress = state.phase === "syncing" && this.#sync.phase === "syncing";
    this.#sync = state;
    if (!isProgress || this.#deps.clock.now() - this.#sentMs >= PROGRESS_MS_MIN) {
      this.#publishChange();
    }
  }

  addConflicts(count: number): void {
    this.#newConflictsCount += count;
  }

  /** Sends the status to all tabs, whether it changed or not. */
  publish(): void {
    const { clock, id } = this.#deps;
    const status = this.#status();
    this.#sentStatus = JSON.stringify(status);
    this.#sentMs = clock.now();
    this.#deps.broadcast({ kind: "status", leader: id, status });
  }

  #publishChange(): void {
    if (JSON.stringify(this.#status()) !== this.#sentStatus) {
      this.publish();
    }
  }

  #status(): LeaderStatus {
    const { storage, warning } = this.#deps;
    return {
      storage,
      ...(warning === undefined ? {} : { warning }),
      ...this.#fileStatus.published,
      newConflictsCount: this.#newConflictsCount,
      sync: this.#sync,
    };
  }
}
