/**
 * The calls of one tab that have no answer yet, by their numbers.
 *
 * Invariants:
 * - A call ends once: by its answer, by an error, or by its time-out. It is then removed from
 *   here.
 * - Numbers count up from 1, so the first call in here is the oldest one.
 */
import { WarrenError, type ErrorInfo, type SyncProgress } from "../api.js";
import {
  RPC_POLICIES,
  type RpcMethodName,
  type RpcParams,
  type RpcResult,
} from "../shared/rpc-methods.js";
import type { RpcCall, RpcResponse } from "../shared/tab-messages.js";
import type { TimeSource } from "../shared/time-source.js";

type ProgressListener = (progress: SyncProgress) => void;

export interface StartedCall<T> {
  readonly number: number;
  readonly answer: Promise<T>;
}

export interface PendingCall {
  readonly call: RpcCall;
  /** The number of leaders that the call was sent to. */
  leadersCount: number;
  readonly onProgress: ProgressListener | undefined;
  readonly resolve: (value: never) => void;
  readonly reject: (error: WarrenError) => void;
  readonly cancelTimer: () => void;
}

export class PendingCalls {
  readonly #tab: string;
  readonly #clock: TimeSource;
  readonly #byNumber = new Map<number, PendingCall>();
  #lastNumber = 0;

  constructor(tab: string, clock: TimeSource) {
    this.#tab = tab;
    this.#clock = clock;
  }

  get count(): number {
    return this.#byNumber.size;
  }

  /** The number up to which all calls have ended. */
  get ackedUpTo(): number {
    const first = this.#byNumber.keys().next();
    return first.done === true ? this.#lastNumber : first.value - 1;
  }

  /** Returns the pending calls of this moment, oldest first. */
  all(): PendingCall[] {
    return [...this.#byNumber.values()];
  }

  get(number: number): PendingCall | undefined {
    return this.#byNumber.get(number);
  }

  /** Numbers a call, and starts its time-out. */
  add<K extends RpcMethodName>(
    method: K,
    params: RpcParams<K>,
    onProgress: ProgressListener | undefined,
  ): StartedCall<RpcResult<K>> {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const base = { kind: "call", tab: this.#tab, number, ackedUpTo: 0, retry: false } as const;
    const call = { ...base, method, params } as unknown as RpcCall;
    const cancelTimer = this.#startTimeout(number, RPC_POLICIES[method].timeoutMs);
    const answer = new Promise<RpcResult<K>>((resolve, reject) => {
      const pending = { call, leadersCount: 0, onProgress, resolve, reject, cancelTimer };
      this.#byNumber.set(number, pending);
    });
    return { number, answer };
  }

  resolve({ number, value }: RpcResponse): void {
    // `RpcMethods` guarantees that the value has the type that the call's answer needs.
    this.#take(number)?.resolve(value as never);
  }

  reject(number: number, error: ErrorInfo): void {
    this.#take(number)?.reject(new WarrenError(error.code, error.message));
  }

  rejectAll(error: ErrorInfo): void {
    [...this.#byNumber.keys()].forEach((number) => this.reject(number, error));
  }

  #startTimeout(number: number, timeoutMs: number): () => void {
    const message = `no answer within ${timeoutMs / 1000} s`;
    return this.#clock.after(timeoutMs, () => this.reject(number, { code: "timeout", message }));
  }

  #take(number: number): PendingCall | undefined {
    const pending = this.#byNumber.get(number);
    pending?.cancelTimer();
    this.#byNumber.delete(number);
    return pending;
  }
}
