/**
 * Whether there is room left. SQLite's files fail to be written without saying why, and what the
 * browser estimates is not what it allows, so it is tried.
 */
import type { ErrorInfo } from "../../api.js";
import { toErrorInfo } from "../../shared/errors.js";

/** About what a transaction needs at least: some pages, and the journal's. */
const PROBE_BYTES = 1 << 20;
const PROBE = "warren-probe";

/** What is told of a failure; if the file system refused it, whether for want of room. */
export async function explainStorageError(thrown: unknown): Promise<ErrorInfo> {
  const info = toErrorInfo(thrown);
  if (info.code !== "storage_failed" || (await hasFreeSpace())) {
    return info;
  }
  return { code: "disk_full", message: "no space left for this page's files" };
}

/** Also where it cannot be found out. */
async function hasFreeSpace(): Promise<boolean> {
  try {
    const folder = await navigator.storage.getDirectory();
    const file = await folder.getFileHandle(PROBE, { create: true });
    const access = await file.createSyncAccessHandle();
    try {
      return access.write(new Uint8Array(PROBE_BYTES)) === PROBE_BYTES;
    } finally {
      access.close();
      await folder.removeEntry(PROBE);
    }
  } catch (thrown) {
    return toErrorInfo(thrown).code !== "disk_full";
  }
}
