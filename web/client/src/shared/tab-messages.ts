/**
 * The messages between tabs, and between a tab and its worker: Format 17.
 *
 * Channels of a database NAME: `warren:NAME` for all, `warren:NAME:LEADER` with calls to a leader,
 * `warren:NAME:TAB` with answers to a tab. A tab whose own worker is the leader uses that worker's
 * port for the latter two.
 */
import type { ErrorInfo, FileKey, SyncProgress, DatabaseStatus } from "../api.js";
import type { RpcResult, RpcMethodName, RpcParams } from "./rpc-methods.js";

/** The protocol version; it increases when the meaning of a message changes. */
export const VERSION = 5;

/** A message on the channel for all. */
export type BroadcastMessage =
  /** A tab asks who the leader is. */
  | { readonly kind: "findLeader" }
  /**
   * The leader identifies itself: in reply to `findLeader`, and unasked when it becomes the
   * leader.
   */
  | { readonly kind: "leader"; readonly leader: string; readonly version: number }
  /** These tables were written to. */
  | { readonly kind: "changed"; readonly tables: readonly string[] }
  /** The file has another key, or none. */
  | { readonly kind: "rekeyed"; readonly key: FileKey | null }
  /** The files are about to be erased: each tab and worker that uses them closes them. */
  | { readonly kind: "deleted" }
  | { readonly kind: "status"; readonly leader: string; readonly status: LeaderStatus };

export type LeaderStatus = Omit<DatabaseStatus, "isLeader">;

/** A message from a tab to the leader. */
export type LeaderMessage = RpcCall | RpcCancel;

export interface RpcCancel {
  readonly kind: "cancel";
  readonly tab: string;
  readonly number: number;
}

export type RpcCall = { readonly [K in RpcMethodName]: RpcCallOf<K> }[RpcMethodName];

export interface RpcCallOf<K extends RpcMethodName> {
  readonly kind: "call";
  readonly tab: string;
  /** The number of the call; a tab's calls count from 1. */
  readonly number: number;
  /** All calls up to this number have their answers. */
  readonly ackedUpTo: number;
  /** Whether another leader may have received this call. */
  readonly retry: boolean;
  readonly method: K;
  readonly params: RpcParams<K>;
}

/** A message from the leader to a tab; `from` is the leader. */
export type TabMessage = RpcResponse | RpcErrorResponse | RpcProgress;

export interface RpcResponse {
  readonly kind: "answer";
  readonly from: string;
  readonly number: number;
  readonly value: RpcResult<RpcMethodName>;
}

export interface RpcErrorResponse {
  readonly kind: "error";
  readonly from: string;
  readonly number: number;
  readonly error: ErrorInfo;
}

export interface RpcProgress {
  readonly kind: "progress";
  readonly from: string;
  readonly number: number;
  readonly progress: SyncProgress;
}

/** The first message of a tab to its worker. */
export interface WorkerStart {
  readonly kind: "start";
  readonly name: string;
  readonly tab: string;
  readonly worker: string;
  readonly key?: FileKey;
  /** The address of the wasm, if it is not in the worker's folder. */
  readonly wasm?: string;
  readonly hasLocks: boolean;
}

export type WorkerMessage =
  | WorkerStart
  | LeaderMessage
  /** The tab's worker opens the file with this key from now on. */
  | { readonly kind: "key"; readonly key: FileKey | null }
  /** The worker releases everything and does not start again. */
  | { readonly kind: "close" };

/** A message of a worker to its tab: answers, and events of the worker itself. */
export type WorkerEvent =
  | TabMessage
  /** The worker runs, and holds its lock. */
  | { readonly kind: "ready" }
  /** The worker cannot open the file, and does not try again. */
  | { readonly kind: "failed"; readonly error: ErrorInfo }
  /** The worker can no longer be trusted; the tab must start another. */
  | { readonly kind: "broken"; readonly error: ErrorInfo }
  | { readonly kind: "closed" };

export const allChannel = (name: string): string => `warren:${name}`;
export const peerChannel = (name: string, peer: string): string => `warren:${name}:${peer}`;
export const leaderLock = (name: string): string => `warren:${name}`;
/** The lock that a tab or a worker holds for as long as it lives. */
export const livenessLock = (name: string, peer: string): string => `warren:${name}:${peer}`;

/** Returns a random id for a tab or a worker: 64 random bits. */
export function newPeerId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
