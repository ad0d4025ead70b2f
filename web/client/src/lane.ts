/** One at a time, in order of arrival, and so many waiting at most. */
import type { Turns } from "./engine.js";
import { failure } from "./errors.js";

export interface Lane {
  /** Waits for its turn; what comes back ends it. */
  take(): Promise<() => void>;
  /** Its turn if nobody has it, else `undefined`. */
  takeNow(): (() => void) | undefined;
}

export function lane(waitingMax: number): Lane {
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
    takeNow,
    async take() {
      const free = takeNow();
      if (free !== undefined) {
        return free;
      }
      if (waiting.length >= waitingMax) {
        throw failure("busy", `${waitingMax} calls are waiting for the file already`);
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
      return turn();
    },
  };
}

/** Runs what takes turns by itself, none at first. */
export async function taking<T>(from: Lane, work: (turns: Turns) => Promise<T>): Promise<T> {
  let free = (): void => undefined;
  const take = async (): Promise<void> => {
    free = await from.take();
  };
  try {
    return await work({ take, give: () => free() });
  } finally {
    free();
  }
}

/** Runs what begins in a turn, and gives it back while it waits for the network. */
export function inTurns<T>(from: Lane, work: (turns: Turns) => Promise<T>): Promise<T> {
  return taking(from, async (turns) => {
    await turns.take();
    return work(turns);
  });
}
