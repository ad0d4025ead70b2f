/**
 * Opens a database's file, or a database in memory if this browser keeps no files.
 *
 * Invariant: a database in memory has a warning that says why.
 */
import type { FileKey } from "../../api.js";
import { toWarrenError } from "../../shared/errors.js";
import type { LeaderStatus } from "../../shared/tab-messages.js";
import { sleep, type TimeSource } from "../../shared/time-source.js";
import type { EngineModule } from "../../shared/wasm-engine.js";
import { openReplicaFile, type ReplicaFile } from "./replica-file.js";

/** A killed leader's file handles are freed a moment after its lock. */
const STORAGE_BUSY_MS_MAX = 10_000;
const STORAGE_BUSY_PAUSE_MS = 20;

const NO_OPFS =
  "this browser stores no files for this page (private window?): the database is in memory, " +
  "and is lost when the leader tab closes";
const NO_LOCKS =
  "this browser cannot share a file between tabs (no secure context?): the database is in " +
  "memory, for this tab only, and is lost when the tab closes";

export interface OpenReplicaOptions {
  readonly name: string;
  /** Whether the browser has locks: without them, tabs cannot share a file. */
  readonly hasLocks: boolean;
  readonly clock: TimeSource;
  /**
   * Returns the key of the file. Called before each try, since the key may change between tries.
   */
  key(): FileKey | undefined;
}

export interface OpenedReplica {
  readonly file: ReplicaFile;
  readonly storage: LeaderStatus["storage"];
  readonly warning?: string;
}

/**
 * Opens the file, or a database in memory. While another worker has the file, it waits, until the
 * signal or for a limited time.
 */
export async function openReplicaOrMemory(
  engine: EngineModule,
  options: OpenReplicaOptions,
  signal: AbortSignal,
): Promise<OpenedReplica> {
  const { name, clock } = options;
  if (!options.hasLocks) {
    const file = await openReplicaFile(engine, name, undefined, true);
    return { file, storage: "memory", warning: NO_LOCKS };
  }
  const untilMs = clock.now() + STORAGE_BUSY_MS_MAX;
  for (;;) {
    try {
      const file = await openReplicaFile(engine, name, options.key(), false);
      return { file, storage: "opfs" };
    } catch (thrown) {
      const error = toWarrenError(thrown);
      if (error.code === "storage_unavailable") {
        const file = await openReplicaFile(engine, name, undefined, true);
        return { file, storage: "memory", warning: NO_OPFS };
      }
      if (error.code !== "busy" || clock.now() > untilMs || signal.aborted) {
        throw error;
      }
      await sleep(clock, STORAGE_BUSY_PAUSE_MS, signal);
    }
  }
}
