/**
 * Derives the published state of the sync from the file's status, the running sync, and the last
 * failure.
 */
import type { ErrorCode, ErrorInfo, SyncProgress, SyncState } from "../../api.js";

/** The part of the file's status on which the sync depends. */
export interface LocalSyncState {
  readonly hasAccount: boolean;
  /** The number of changes to send, and of tables whose changes only a sync finds. */
  readonly unsyncedCount: number;
  /** Whether both sides held the same set of changes at the last sync. */
  readonly inSync: boolean;
}

/** Why the last sync failed. */
export interface SyncFailure {
  /** Whether another try may succeed. */
  readonly isTransient: boolean;
  readonly error: ErrorInfo;
  readonly retryMs: number;
}

/** A running sync, and its progress. */
export interface RunningSync {
  /** Aborted if the sync has to yield; it resumes later. */
  readonly yielding: AbortController;
  progress: SyncProgress | undefined;
}

/**
 * The codes of failures that another try may get past, without any action by the user. `disk_full`
 * is not one: only the user can free space on this device, and must be informed.
 */
const TRANSIENT_CODES: ReadonlySet<ErrorCode> = new Set([
  "busy",
  "unexpected_response",
  "internal",
  // Or a proxy answered in the server's place, with a page.
  "origin_not_allowed",
  "server_damaged",
  "server_disk_full",
  "timeout",
  "too_many_attempts",
  "unavailable",
  "unreachable",
]);

export function isTransient(error: ErrorInfo): boolean {
  return TRANSIENT_CODES.has(error.code);
}

export function syncState(
  local: LocalSyncState,
  running: RunningSync | undefined,
  failure: SyncFailure | undefined,
): SyncState {
  if (!local.hasAccount) {
    return { phase: "local" };
  }
  if (running !== undefined) {
    const { progress } = running;
    return progress === undefined ? { phase: "syncing" } : { phase: "syncing", progress };
  }
  if (failure !== undefined) {
    const { error, retryMs } = failure;
    return failure.isTransient ? { phase: "offline", retryMs, error } : { phase: "failed", error };
  }
  return { phase: local.unsyncedCount === 0 && local.inSync ? "inSync" : "pending" };
}
