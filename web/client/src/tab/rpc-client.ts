/**
 * The tab's calls: sent to the current leader, and again to the next one if that leader ended
 * before it answered.
 *
 * Invariants:
 * - Every call ends: by its answer, its time-out, or the end of the database.
 * - Answers count only from the leader that the tab knows at the moment.
 *
 * Not here: numbers and time-outs of calls → `pending-calls.ts`.
 */
import { WarrenError, type ErrorInfo, type SyncProgress } from "../api.js";
import {
  RPC_POLICIES,
  type RpcMethodName,
  type RpcParams,
  type RpcResult,
} from "../shared/rpc-methods.js";
import type { LeaderMessage, TabMessage } from "../shared/tab-messages.js";
import type { TimeSource } from "../shared/time-source.js";
import { PendingCalls, type PendingCall, type StartedCall } from "./pending-calls.js";

/** The maximum number of pending calls of one tab. */
const CALLS_COUNT_MAX = 20_000;
/** A call that was sent to this many leaders may be what ended them. */
const LEADERS_PER_CALL_MAX = 5;

export interface RpcCallOptions {
  readonly onProgress?: ((progress: SyncProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface KnownLeader {
  readonly id: string;
  readonly post: (message: LeaderMessage) => void;
}

export class RpcClient {
  readonly #tab: string;
  readonly #pending: PendingCalls;
  #leader: KnownLeader | undefined;
  #leadersCount = 0;
  #ended: ErrorInfo | undefined;

  constructor(tab: string, clock: TimeSource) {
    this.#tab = tab;
    this.#pending = new PendingCalls(tab, clock);
  }

  /** The number of leaders so far. */
  get leadersCount(): number {
    return this.#leadersCount;
  }

  invoke<K extends RpcMethodName>(
    method: K,
    params: RpcParams<K>,
    options: RpcCallOptions = {},
  ): StartedCall<RpcResult<K>> {
    const refusal = this.#refusal(options);
    if (refusal !== undefined) {
      return { number: 0, answer: Promise.reject<RpcResult<K>>(refusal) };
    }
    const { number, answer } = this.#pending.add(method, params, options.onProgress);
    this.#send(number);
    options.signal?.addEventListener("abort", () => this.#cancel(number), { once: true });
    return { number, answer };
  }

  handleMessage(message: TabMessage): void {
    const pending = this.#pending.get(message.number);
    if (pending === undefined || message.from !== this.#leader?.id) {
      return;
    }
    switch (message.kind) {
      case "progress":
        pending.onProgress?.(message.progress);
        break;
      case "answer":
        this.#pending.resolve(message);
        break;
      case "error":
        this.#pending.reject(message.number, message.error);
        break;
    }
  }

  /** Sets another leader: sends it the pending calls, after those of `first`. */
  setLeader(id: string, post: (message: LeaderMessage) => void, first: () => void): void {
    const before = this.#pending.all();
    this.#leadersCount += 1;
    this.#leader = { id, post };
    first();
    for (const pending of before) {
      const { number } = pending.call;
      if (wentWithLeader(pending)) {
        this.#pending.reject(number, leaderLost("the leader tab is gone"));
      } else {
        this.#send(number);
      }
    }
  }

  /** Rejects all calls, pending and future, with this error. */
  rejectAll(error: ErrorInfo): void {
    this.#ended = error;
    this.#pending.rejectAll(error);
  }

  /** Returns the reason for which a call must not start, if there is one. */
  #refusal(options: RpcCallOptions): WarrenError | undefined {
    if (this.#ended !== undefined) {
      return new WarrenError(this.#ended.code, this.#ended.message);
    }
    if (options.signal?.aborted === true) {
      return new WarrenError("cancelled", "the call was canceled");
    }
    return this.#pending.count < CALLS_COUNT_MAX
      ? undefined
      : new WarrenError("busy", `${CALLS_COUNT_MAX} calls of this tab are pending: await some`);
  }

  /** Sends a call to the leader; without one, the call waits for {@link setLeader}. */
  #send(number: number): void {
    const pending = this.#pending.get(number);
    if (this.#leader === undefined || pending === undefined) {
      return;
    }
    const retry = pending.leadersCount > 0;
    pending.leadersCount += 1;
    if (pending.leadersCount > LEADERS_PER_CALL_MAX) {
      const why = `${LEADERS_PER_CALL_MAX} leader tabs ended before they answered`;
      this.#pending.reject(number, leaderLost(why));
      return;
    }
    try {
      this.#leader.post({ ...pending.call, ackedUpTo: this.#pending.ackedUpTo, retry });
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      this.#pending.reject(number, { code: "invalid_argument", message });
    }
  }

  #cancel(number: number): void {
    if (this.#pending.get(number) !== undefined) {
      this.#leader?.post({ kind: "cancel", tab: this.#tab, number });
      this.#pending.reject(number, { code: "cancelled", message: "the call was canceled" });
    }
  }
}

/** Whether the call's other half was lost with the leader that it was sent to. */
function wentWithLeader({ call, leadersCount }: PendingCall): boolean {
  return leadersCount > 0 && RPC_POLICIES[call.method].onLeaderChange === "reject";
}

function leaderLost(message: string): ErrorInfo {
  return { code: "leader_lost", message };
}
