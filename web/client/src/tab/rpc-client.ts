/**
 * The tab's calls under way: sent to whoever is the leader, and again to the next one if it went
 * away before it answered.
 *
 * Invariants:
 * - Every call ends: by its answer, its time-out, or the end of the database.
 * - Answers count only from the leader that the tab knows at the moment.
 */
import type { ErrorInfo, SyncProgress } from "../api.js";
import { WarrenError } from "../api.js";
import {
  RPC_POLICIES,
  type RpcResult,
  type RpcMethodName,
  type RpcParams,
} from "../shared/rpc-methods.js";
import type { TimeSource } from "../shared/time-source.js";
import { clientError } from "../shared/errors.js";
import type { RpcCall, LeaderMessage, TabMessage } from "../shared/tab-messages.js";

/** Calls of one tab that are under way. */
const CALLS_COUNT_MAX = 20_000;
/** A call that so many owners were asked may be what they died of. */
const LEADERS_PER_CALL_MAX = 5;

export interface StartedCall<T> {
  readonly number: number;
  readonly answer: Promise<T>;
}

export interface RpcCallOptions {
  readonly onProgress?: ((progress: SyncProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RpcClient {
  invoke<K extends RpcMethodName>(
    name: K,
    given: RpcParams<K>,
    options?: RpcCallOptions,
  ): StartedCall<RpcResult<K>>;
  handleMessage(message: TabMessage): void;
  /** How many owners there were. */
  leadersCount(): number;
  /** Another leader: it is asked what is under way, after `first`. */
  setLeader(owner: string, post: (message: LeaderMessage) => void, first: () => void): void;
  /** Nothing will be answered any more. */
  rejectAll(error: ErrorInfo): void;
}

interface PendingCall {
  readonly call: RpcCall;
  owners: number;
  readonly options: RpcCallOptions;
  readonly resolve: (value: never) => void;
  readonly reject: (error: WarrenError) => void;
  readonly cancelTimer: () => void;
}

export function createRpcClient(tab: string, clock: TimeSource): RpcClient {
  const underWay = new Map<number, PendingCall>();
  let last = 0;
  let owner: { readonly id: string; readonly post: (message: LeaderMessage) => void } | undefined;
  let owners = 0;
  let ended: ErrorInfo | undefined;

  function takePending(number: number): PendingCall | undefined {
    const one = underWay.get(number);
    one?.cancelTimer();
    underWay.delete(number);
    return one;
  }

  function reject(number: number, error: ErrorInfo): void {
    takePending(number)?.reject(new WarrenError(error.code, error.message));
  }

  /** All calls up to this number have ended. */
  function ackedUpTo(): number {
    const first = underWay.keys().next();
    return first.done === true ? last : first.value - 1;
  }

  function send(one: PendingCall): void {
    if (owner === undefined) {
      return;
    }
    const again = one.owners > 0;
    one.owners += 1;
    if (one.owners > LEADERS_PER_CALL_MAX) {
      reject(
        one.call.number,
        leaderLost(`${LEADERS_PER_CALL_MAX} tabs have gone before they answered`),
      );
      return;
    }
    try {
      owner.post({ ...one.call, settled: ackedUpTo(), again });
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

  function rejectionNow(options: RpcCallOptions): WarrenError | undefined {
    if (ended !== undefined) {
      return new WarrenError(ended.code, ended.message);
    }
    if (options.signal?.aborted === true) {
      return clientError("aborted", "it was cancelled");
    }
    return underWay.size < CALLS_COUNT_MAX
      ? undefined
      : clientError("busy", `${CALLS_COUNT_MAX} calls of this tab are under way: await some`);
  }

  return {
    leadersCount: () => owners,
    invoke<K extends RpcMethodName>(name: K, given: RpcParams<K>, options: RpcCallOptions = {}) {
      const refused = rejectionNow(options);
      if (refused !== undefined) {
        return { number: 0, answer: Promise.reject<RpcResult<K>>(refused) };
      }
      last += 1;
      const number = last;
      const answer = new Promise<RpcResult<K>>((resolve, rejectCall) => {
        const { timeoutMs: waitMs } = RPC_POLICIES[name];
        const cancelTimer = clock.after(waitMs, () => {
          const message = `no answer for ${waitMs / 1000} s`;
          reject(number, { code: "timeout", message });
        });
        const base = { kind: "call", tab, number, settled: 0, again: false } as const;
        const call = { ...base, name, given } as unknown as RpcCall;
        const one = { call, owners: 0, options, resolve, reject: rejectCall, cancelTimer };
        underWay.set(number, one);
        send(one);
      });
      options.signal?.addEventListener("abort", () => cancel(number), { once: true });
      return { number, answer };
    },
    handleMessage(message) {
      const one = underWay.get(message.number);
      if (one === undefined || message.from !== owner?.id) {
        return;
      }
      switch (message.kind) {
        case "progress":
          one.options.onProgress?.(message.progress);
          break;
        case "answer":
          takePending(message.number);
          // The table of calls says that this is what the call answers.
          one.resolve(message.value as never);
          break;
        case "error":
          reject(message.number, message.error);
          break;
      }
    },
    setLeader(id, post, first) {
      const before = [...underWay.values()];
      owners += 1;
      owner = { id, post };
      first();
      for (const one of before) {
        if (one.owners > 0 && RPC_POLICIES[one.call.name].onLeaderChange === "reject") {
          reject(one.call.number, leaderLost("the tab that held the file is gone"));
        } else {
          send(one);
        }
      }
    },
    rejectAll(error) {
      ended = error;
      [...underWay.keys()].forEach((number) => reject(number, error));
    },
  };
}

function leaderLost(message: string): ErrorInfo {
  return { code: "owner_lost", message };
}
