/**
 * How the database stands: what the file said last, and what the tabs were told of it.
 *
 * Invariants:
 * - The tabs are told what changed, and nothing twice, unless somebody asks.
 * - Of a sync's progress they are told at intervals; how it ends they are told at once.
 */
import type { SyncState } from "../api.js";
import type { BroadcastMessage, LeaderStatus } from "../shared/tab-messages.js";
import type { TimeSource } from "../shared/time-source.js";
import { readStatus, type ReplicaFileStatus } from "./file/file-status.js";
import type { ReplicaFile } from "./file/replica-file.js";

/** How often, at most, all tabs are told how far a sync is. */
const PROGRESS_MS_MIN = 50;
/** Until the file is asked how it stands after a change; many changes come in a row. */
const REFRESH_MS = 50;

export interface StatusPublisherDeps {
  readonly file: ReplicaFile;
  /** The leader's worker's name. */
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
  /** What the tabs were told last, as JSON, and when. */
  #told = "";
  #toldMs = 0;
  #cancelRefresh: (() => void) | undefined;

  constructor(deps: StatusPublisherDeps) {
    this.#deps = deps;
    this.#fileStatus = readStatus(deps.file);
  }

  /** What the file said last. */
  get fileStatus(): ReplicaFileStatus {
    return this.#fileStatus;
  }

  refresh(): void {
    this.#fileStatus = readStatus(this.#deps.file);
    this.#tellChange();
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
    if (!isProgress || this.#deps.clock.now() - this.#toldMs >= PROGRESS_MS_MIN) {
      this.#tellChange();
    }
  }

  addConflicts(count: number): void {
    this.#newConflictsCount += count;
  }

  /** Tells all tabs how it stands, whether that changed or not. */
  tell(): void {
    const { clock, id } = this.#deps;
    const status = this.#status();
    this.#told = JSON.stringify(status);
    this.#toldMs = clock.now();
    this.#deps.broadcast({ kind: "status", leader: id, status });
  }

  #tellChange(): void {
    if (JSON.stringify(this.#status()) !== this.#told) {
      this.tell();
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
