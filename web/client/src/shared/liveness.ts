/**
 * Liveness locks: each tab and each worker holds its own for as long as it lives.
 *
 * Invariant: the browser frees a lock when its holder ends, however it ends. So a tab or worker
 * that waits for the lock notices that end, and none has to poll.
 */
import { WarrenError } from "../api.js";
import { livenessLock } from "./tab-messages.js";

export type LivenessLocks = Pick<LockManager, "request" | "query">;

/** Takes the lock of a tab and keeps it until the signal; the end of the page frees it, too. */
export function holdLock(locks: LivenessLocks, lock: string, until: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const kept = locks.request(lock, () => {
      resolve();
      return new Promise<void>((free) => until.addEventListener("abort", () => free()));
    });
    kept.catch((thrown: unknown) => {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      reject(new WarrenError("internal", `cannot acquire a lock for this tab: ${why}`));
    });
  });
}

/** Calls `work` when the holder of a lock has ended, unless the signal comes first. */
export function onHolderEnd(
  locks: LivenessLocks | undefined,
  lock: string,
  signal: AbortSignal,
  work: () => void,
): void {
  const granted = locks?.request(lock, { signal }, work);
  // A rejection means aborted: the caller no longer waits for the lock.
  granted?.catch(() => undefined);
}

/** Lists the ids of the live tabs and workers of a database. */
export async function livePeers(locks: LivenessLocks | undefined, name: string): Promise<string[]> {
  const held = (await locks?.query())?.held ?? [];
  const prefix = livenessLock(name, "");
  return held.flatMap((lock) =>
    lock.name?.startsWith(prefix) === true ? [lock.name.slice(prefix.length)] : [],
  );
}
