/**
 * The tab's calls under way: sent to whoever is the owner, and again to the next one if it went
 * away before it answered.
 *
 * Invariants:
 * - Every call ends: by its answer, its time-out, or the end of the database.
 * - Answers count only from the owner that the tab knows at the moment.
 */
import type { ErrorInfo, Progress } from "./api.js";
import { WarrenError } from "./api.js";
import { RULES, type Answered, type CallName, type Given } from "./calls.js";
import type { Clock } from "./clock.js";
import { failure } from "./errors.js";
import type { Call, ToOwner, ToTab } from "./messages.js";

/** Calls of one tab that are under way. */
const CALLS_COUNT_MAX = 20_000;
/** A call that so many owners were asked may be what they died of. */
const OWNERS_COUNT_MAX = 5;

export interface Asked<T> {
  readonly number: number;
  readonly answer: Promise<T>;
}

export interface AskOptions {
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Asking {
  ask<K extends CallName>(name: K, given: Given<K>, options?: AskOptions): Asked<Answered<K>>;
  hear(message: ToTab): void;
  /** How many owners there were. */
  owners(): number;
  /** Another owner: it is asked what is under way, after `first`. */
  moveTo(owner: string, post: (message: ToOwner) => void, first: () => void): void;
  /** Nothing will be answered any more. */
  end(error: ErrorInfo): void;
}

interface UnderWay {
  readonly call: Call;
  owners: number;
  readonly options: AskOptions;
  readonly resolve: (value: never) => void;
  readonly reject: (error: WarrenError) => void;
  readonly cancelTimer: () => void;
}

export function asking(tab: string, clock: Clock): Asking {
  const underWay = new Map<number, UnderWay>();
  let last = 0;
  let owner: { readonly id: string; readonly post: (message: ToOwner) => void } | undefined;
  let owners = 0;
  let ended: ErrorInfo | undefined;

  function settle(number: number): UnderWay | undefined {
    const one = underWay.get(number);
    one?.cancelTimer();
    underWay.delete(number);
    return one;
  }

  function reject(number: number, error: ErrorInfo): void {
    settle(number)?.reject(new WarrenError(error.code, error.message));
  }

  /** All calls up to this number have ended. */
  function settled(): number {
    const first = underWay.keys().next();
    return first.done === true ? last : first.value - 1;
  }

  function send(one: UnderWay): void {
    if (owner === undefined) {
      return;
    }
    const again = one.owners > 0;
    one.owners += 1;
    if (one.owners > OWNERS_COUNT_MAX) {
      reject(one.call.number, lost(`${OWNERS_COUNT_MAX} tabs have gone before they answered`));
      return;
    }
    try {
      owner.post({ ...one.call, settled: settled(), again });
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      reject(one.call.number, { code: "invalid_argument", message });
    }
  }

  function cancel(number: number): void {
    if (underWay.has(number)) {
      owner?.post({ kind: "cancel", tab, number });
      reject(number, { code: "aborted", message: "it was cancelled" });
    }
  }

  function refuseNow(options: AskOptions): WarrenError | undefined {
    if (ended !== undefined) {
      return new WarrenError(ended.code, ended.message);
    }
    if (options.signal?.aborted === true) {
      return failure("aborted", "it was cancelled");
    }
    return underWay.size < CALLS_COUNT_MAX
      ? undefined
      : failure("busy", `${CALLS_COUNT_MAX} calls of this tab are under way: await some`);
  }

  return {
    owners: () => owners,
    ask<K extends CallName>(name: K, given: Given<K>, options: AskOptions = {}) {
      const refused = refuseNow(options);
      if (refused !== undefined) {
        return { number: 0, answer: Promise.reject<Answered<K>>(refused) };
      }
      last += 1;
      const number = last;
      const answer = new Promise<Answered<K>>((resolve, rejectCall) => {
        const { waitMs } = RULES[name];
        const cancelTimer = clock.after(waitMs, () => {
          const message = `no answer for ${waitMs / 1000} s`;
          reject(number, { code: "timeout", message });
        });
        const base = { kind: "call", tab, number, settled: 0, again: false } as const;
        const call = { ...base, name, given } as unknown as Call;
        const one = { call, owners: 0, options, resolve, reject: rejectCall, cancelTimer };
        underWay.set(number, one);
        send(one);
      });
      options.signal?.addEventListener("abort", () => cancel(number), { once: true });
      return { number, answer };
    },
    hear(message) {
      const one = underWay.get(message.number);
      if (one === undefined || message.from !== owner?.id) {
        return;
      }
      switch (message.kind) {
        case "progress":
          one.options.onProgress?.(message.progress);
          break;
        case "answer":
          settle(message.number);
          // The table of calls says that this is what the call answers.
          one.resolve(message.value as never);
          break;
        case "error":
          reject(message.number, message.error);
          break;
      }
    },
    moveTo(id, post, first) {
      const before = [...underWay.values()];
      owners += 1;
      owner = { id, post };
      first();
      for (const one of before) {
        if (one.owners > 0 && RULES[one.call.name].onNewOwner === "reject") {
          reject(one.call.number, lost("the tab that held the file is gone"));
        } else {
          send(one);
        }
      }
    },
    end(error) {
      ended = error;
      [...underWay.keys()].forEach((number) => reject(number, error));
    },
  };
}

function lost(message: string): ErrorInfo {
  return { code: "owner_lost", message };
}
