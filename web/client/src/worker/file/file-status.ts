/** How the file stands: for the tabs, and for the decision when to sync. */
import type { ReplicaFile } from "./replica-file.js";
import { toServerLoss } from "../../shared/wire-json.js";
import type { VisibilityOverrideKindJson } from "../../shared/json-types.js";
import type { LeaderStatus } from "../../shared/tab-messages.js";
import type { LocalSyncState } from "../sync/sync-state.js";

export interface ReplicaFileStatus {
  readonly published: Pick<
    LeaderStatus,
    "account" | "sealed" | "encrypted" | "unsent" | "held" | "syncedMs" | "serverLoss"
  >;
  readonly syncState: LocalSyncState;
}

/** Visibility overrides of deleted rows. */
const DELETED_KINDS: ReadonlySet<VisibilityOverrideKindJson> = new Set([
  "resurrected",
  "dangling_reference",
] as const);

export function readStatus(file: ReplicaFile): ReplicaFileStatus {
  const { e2ee: sealed, remote, visibility_overrides: overrides, ...status } = file.status();
  const unsent = status.unsent_count + status.pending_count;
  // What was written to a table since its schema changed is only found by a sync.
  const toSync = unsent + status.uncaptured_tables.length;
  const held = overrides.filter(({ kind }) => !DELETED_KINDS.has(kind)).length;
  const always = { sealed, encrypted: file.isEncrypted(), unsent, held };
  if (remote === null || file.token() === undefined) {
    return { published: always, syncState: { hasAccount: false, toSync, equal: false } };
  }
  const { server, login, last_synced_ms: syncedMs, in_sync: equal } = remote;
  const account = { server, login };
  const synced = { ...(syncedMs > 0 ? { syncedMs } : {}), ...toServerLoss(remote.server_loss) };
  const told = { ...always, account, ...synced };
  return { published: told, syncState: { hasAccount: true, toSync, equal } };
}
