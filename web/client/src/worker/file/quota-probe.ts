/**
 * Finds out whether there is free space. SQLite's files fail to be written without saying why, and
 * the browser's estimate is not what it really allows, so this writes a probe.
 */
import type { ErrorInfo } from "../../api.js";
import { toErrorInfo } from "../../shared/errors.js";

/** About the least that a transaction needs: some pages, and those of the journal. */
const PROBE_BYTES = 1 << 20;
const PROBE = "warren-probe";

/**
 * Returns the error to report; if the file system refused a write, whether the reason is lack of
 * space.
 */
export async function explainStorageError(thrown: unknown): Promise<ErrorInfo> {
  const info = toErrorInfo(thrown);
  if (info.code !== "storage_failed" || (await hasFreeSpace())) {
    return info;
  }
  return { code: "disk_full", message: "no space left for this page's files" };
}

/** Whether a probe can be written; also true if that cannot be found out. */
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
