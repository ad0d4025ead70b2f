/** How the file stands: for the tabs, and for the decision when to sync. */
import type { OpenFile } from "./file.js";
import type { OwnStatus } from "./messages.js";
import type { Standing } from "./syncing.js";

export interface FileStatus {
  readonly told: Pick<OwnStatus, "account" | "sealed" | "unsent" | "syncedMs">;
  readonly standing: Standing;
}

export function readStatus(file: OpenFile): FileStatus {
  const { sealed, remote, ...status } = file.status();
  const unsent = status.unsent + status.noted;
  if (remote === null || file.token() === undefined) {
    return { told: { sealed, unsent }, standing: { hasAccount: false, unsent, equal: false } };
  }
  const { server, login, synced_ms: syncedMs, equal } = remote;
  const account = { server, login };
  const told = { sealed, unsent, account, ...(syncedMs > 0 ? { syncedMs } : {}) };
  return { told, standing: { hasAccount: true, unsent, equal } };
}
