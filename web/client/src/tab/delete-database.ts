/**
 * Erases a database's files, after every tab has closed them.
 *
 * Whoever has the database open, or waits for it, is told and closes it; then the lock comes to
 * this tab, in its turn. Whoever opens the database meanwhile waits behind this, and makes a new
 * one.
 */
import { WarrenError } from "../api.js";
import { sleep, systemTimeSource } from "../shared/time-source.js";
import { allChannel, leaderLock, type BroadcastMessage } from "../shared/tab-messages.js";

/** For the tabs to close it, and for the browser to give free the files of one that was killed. */
const CLOSED_MS_MAX = 30_000;
const BUSY_PAUSE_MS = 20;
/** The folder in which each database has its own (`crates/replica-wasm/src/browser_storage.rs`). */
const POOLS = "warren";

/**
 * Erases a database that nobody has to be able to open: its key may be lost. What was not sent is
 * lost. Done when there is none, too.
 */
export async function deleteDatabase(name: string): Promise<void> {
  const locks = (navigator as { locks?: LockManager }).locks;
  if (locks === undefined) {
    // Then each tab has one of its own, in memory.
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
        // It was never made, or this browser keeps no files for the page.
        return;
      }
      if (why !== "NoModificationAllowedError" || Date.now() > untilMs) {
        throw thrown;
      }
      await sleep(systemTimeSource, BUSY_PAUSE_MS, new AbortController().signal);
    }
  }
}
