/** Reads the file's status, for the tabs and for the decision when to sync. */
import type { ReplicaFile } from "./replica-file.js";
import { toServerLoss } from "../../shared/wire-json.js";
import type { VisibilityOverrideKindJson } from "../../shared/json-types.js";
import type { LeaderStatus } from "../../shared/tab-messages.js";
import type { LocalSyncState } from "../sync/sync-state.js";

export interface ReplicaFileStatus {
  readonly published: Pick<
    LeaderStatus,
    | "account"
    | "endToEndEncrypted"
    | "encrypted"
    | "unsentCount"
    | "hiddenRowsCount"
    | "lastSyncedMs"
    | "serverLoss"
  >;
  readonly syncState: LocalSyncState;
}

/** The kinds of visibility overrides that concern deleted rows. */
const DELETED_KINDS: ReadonlySet<VisibilityOverrideKindJson> = new Set([
  "resurrected",
  "dangling_reference",
] as const);

export function readStatus(file: ReplicaFile): ReplicaFileStatus {
  const { e2ee: endToEndEncrypted, remote, ...status } = file.status();
  const unsentCount = status.unsent_count + status.pending_count;
  // Writes to a table since its schema changed are found only by a sync.
  const unsyncedCount = unsentCount + status.uncaptured_tables.length;
  const hidden = status.visibility_overrides.filter(({ kind }) => !DELETED_KINDS.has(kind));
  const hiddenRowsCount = hidden.length;
  const encrypted = file.isEncrypted();
  const always = { endToEndEncrypted, encrypted, unsentCount, hiddenRowsCount };
  if (remote === null || file.token() === undefined) {
    return { published: always, syncState: { hasAccount: false, unsyncedCount, inSync: false } };
  }
  const { server, login, last_synced_ms: lastSyncedMs, in_sync: inSync } = remote;
  const account = { server, login };
  const synced = {
    ...(lastSyncedMs > 0 ? { lastSyncedMs } : {}),
    ...toServerLoss(remote.server_loss),
  };
  const published = { ...always, account, ...synced };
  return { published, syncState: { hasAccount: true, unsyncedCount, inSync } };
}
