/**
 * What is told of syncing: a function of what the file says, the sync that runs, and the last
 * failure.
 */
import type { ErrorCode, ErrorInfo, SyncProgress, SyncState } from "../../api.js";

/** What the file says of itself. */
export interface LocalSyncState {
  readonly hasAccount: boolean;
  /** Changes that are to be sent, and tables whose changes only a sync finds. */
  readonly unsyncedCount: number;
  /** Whether both sides held the same set when they last spoke. */
  readonly inSync: boolean;
}

/** Why the last sync failed. */
export interface SyncFailure {
  /** Whether another try may mend it. */
  readonly isTransient: boolean;
  readonly error: ErrorInfo;
  readonly retryMs: number;
}

/** A sync that runs, and how far it is. */
export interface RunningSync {
  /** Aborted where the sync has to give way; it goes on after that. */
  readonly yielding: AbortController;
  progress: SyncProgress | undefined;
}

/**
 * What another try may mend, without anybody doing anything. Not `disk_full`: to free space on this
 * device is up to its user, who has to be told.
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
