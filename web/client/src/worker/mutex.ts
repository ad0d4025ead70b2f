/** A lock for one holder at a time, in order of arrival, with a limit on the number of waiters. */
import { WarrenError } from "../api.js";
import type { ConnectionLock } from "../shared/wasm-engine.js";

export interface Mutex {
  /** Waits for the lock; the returned function releases it. */
  acquire(): Promise<() => void>;
  /** Takes the lock if it is free, else returns `undefined`. */
  tryAcquire(): (() => void) | undefined;
}

export function createMutex(waitingMax: number): Mutex {
  const waiting: (() => void)[] = [];
  let isTaken = false;
  const turn = (): (() => void) => {
    let isMine = true;
    return () => {
      if (!isMine) {
        return;
      }
      isMine = false;
      const next = waiting.shift();
      if (next === undefined) {
        isTaken = false;
      } else {
        next();
      }
    };
  };
  const takeNow = (): (() => void) | undefined => {
    if (isTaken) {
      return undefined;
    }
    isTaken = true;
    return turn();
  };
  return {
    tryAcquire: takeNow,
    async acquire() {
      const free = takeNow();
      if (free !== undefined) {
        return free;
      }
      if (waiting.length >= waitingMax) {
        throw new WarrenError("busy", `${waitingMax} calls are already waiting for the file`);
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
      return turn();
    },
  };
}

/** Runs work that acquires and releases the lock itself; it does not hold the lock at first. */
export async function withManualLock<T>(
  from: Mutex,
  work: (turns: ConnectionLock) => Promise<T>,
): Promise<T> {
  let free = (): void => undefined;
  const take = async (): Promise<void> => {
    free = await from.acquire();
  };
  try {
    return await work({ acquire: take, release: () => free() });
  } finally {
    free();
  }
}

/** Runs work that holds the lock at first, and releases it while it waits for the network. */
export function withLock<T>(from: Mutex, work: (turns: ConnectionLock) => Promise<T>): Promise<T> {
  return withManualLock(from, async (turns) => {
    await turns.acquire();
    return work(turns);
  });
}
