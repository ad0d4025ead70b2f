/**
 * Erases a database's files, after every tab has closed them.
 *
 * Each tab that has the database open or waits for it is notified and closes it; then this tab
 * gets the lock, in its turn. A tab that opens the database in the meantime waits for the lock
 * behind this one, and creates a new database.
 */
import { WarrenError } from "../api.js";
import { sleep, systemTimeSource } from "../shared/time-source.js";
import { allChannel, leaderLock, type BroadcastMessage } from "../shared/tab-messages.js";

/**
 * The time limit for the tabs to close the database, and for the browser to release the files of a
 * killed tab.
 */
const CLOSED_MS_MAX = 30_000;
const BUSY_PAUSE_MS = 20;
/** The folder in which each database has its own (`crates/replica-wasm/src/browser_storage.rs`). */
const POOLS = "warren";

/**
 * Erases a database without opening it, so that its key may be lost. Unsent changes are lost.
 * Succeeds also if the database does not exist.
 */
export async function deleteDatabase(name: string): Promise<void> {
  const locks = (navigator as { locks?: LockManager }).locks;
  if (locks === undefined) {
    // Without locks, each tab has a database of its own, in memory.
    return;
  }
  const all = new BroadcastChannel(allChannel(name));
  all.postMessage({ kind: "deleted" } satisfies BroadcastMessage);
  try {
    const signal = AbortSignal.timeout(CLOSED_MS_MAX);
    await locks.request(leaderLock(name), { signal }, () => erase(name));
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === "TimeoutError") {
      throw new WarrenError("timeout", `another tab has not closed the database ${name}`);
    }
    throw thrown;
  } finally {
    all.close();
  }
}

async function erase(name: string): Promise<void> {
  const { storage } = navigator as { storage?: Partial<StorageManager> };
  if (storage?.getDirectory === undefined) {
    return;
  }
  const untilMs = Date.now() + CLOSED_MS_MAX;
  for (;;) {
    try {
      const root = await storage.getDirectory();
      const pools = await root.getDirectoryHandle(POOLS);
      return await pools.removeEntry(name, { recursive: true });
    } catch (thrown) {
      const why = thrown instanceof DOMException ? thrown.name : "";
      if (why === "NotFoundError" || why === "SecurityError") {
        // The database was never created, or this browser keeps no files for the page.
        return;
      }
      if (why !== "NoModificationAllowedError" || Date.now() > untilMs) {
        throw thrown;
      }
      await sleep(systemTimeSource, BUSY_PAUSE_MS, new AbortController().signal);
    }
  }
}
