/** How the file stands: for the tabs, and for the decision when to sync. */
import type { OpenFile } from "./file.js";
import { toServerLoss } from "./json.js";
import type { OwnStatus } from "./messages.js";
import type { Standing } from "./syncing.js";

export interface FileStatus {
  readonly told: Pick<
    OwnStatus,
    "account" | "sealed" | "encrypted" | "unsent" | "held" | "syncedMs" | "serverLoss"
  >;
  readonly standing: Standing;
}

/** Exceptions that are about deleted rows. */
const VISIBLE: ReadonlySet<string> = new Set(["kept", "missing"]);

export function readStatus(file: OpenFile): FileStatus {
  const { sealed, remote, exceptions, ...status } = file.status();
  const unsent = status.unsent + status.noted;
  // What was written to a table since its schema changed is only found by a sync.
  const toSync = unsent + status.uncaptured.length;
  const held = exceptions.filter(({ kind }) => !VISIBLE.has(kind)).length;
  const always = { sealed, encrypted: file.isEncrypted(), unsent, held };
  if (remote === null || file.token() === undefined) {
    return { told: always, standing: { hasAccount: false, toSync, equal: false } };
  }
  const { server, login, synced_ms: syncedMs, equal, loss } = remote;
  const account = { server, login };
  const synced = { ...(syncedMs > 0 ? { syncedMs } : {}), ...toServerLoss(loss) };
  const told = { ...always, account, ...synced };
  return { told, standing: { hasAccount: true, toSync, equal } };
}
