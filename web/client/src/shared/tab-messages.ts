/**
 * What travels between tabs, and between a tab and its worker: Format 17.
 *
 * Channels of a database NAME: `warren:NAME` for all, `warren:NAME:LEADER` with calls to a leader,
 * `warren:NAME:TAB` with answers to a tab. A tab whose own worker is the leader uses that worker's
 * port for the latter two.
 */
import type { ErrorInfo, FileKey, SyncProgress, DatabaseStatus } from "../api.js";
import type { RpcResult, RpcMethodName, RpcParams } from "./rpc-methods.js";

/** Goes up when a message changes its meaning. */
export const VERSION = 5;

/** On the channel for all. */
export type BroadcastMessage =
  /** A tab asks who the leader is. */
  | { readonly kind: "findLeader" }
  /** Here I am: the answer to `findLeader`, and of itself when one becomes the leader. */
  | { readonly kind: "leader"; readonly leader: string; readonly version: number }
  /** These tables were written to. */
  | { readonly kind: "changed"; readonly tables: readonly string[] }
  /** The file has another key, or none. */
  | { readonly kind: "rekeyed"; readonly key: FileKey | null }
  /** The files are about to be erased: whoever uses them closes them. */
  | { readonly kind: "deleted" }
  | { readonly kind: "status"; readonly leader: string; readonly status: LeaderStatus };

export type LeaderStatus = Omit<DatabaseStatus, "isLeader">;

/** From a tab to the leader. */
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
  /** Counts the tab's calls, from 1. */
  readonly number: number;
  /** All calls up to this number have their answers. */
  readonly ackedUpTo: number;
  /** Whether another leader may have been asked this. */
  readonly retry: boolean;
  readonly method: K;
  readonly params: RpcParams<K>;
}

/** From the leader to a tab; `from` is the leader. */
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

/** What a worker is told by its tab, beside calls. */
export interface WorkerStart {
  readonly kind: "start";
  readonly name: string;
  readonly tab: string;
  readonly worker: string;
  readonly key?: FileKey;
  /** Where the wasm is, if not beside the worker. */
  readonly wasm?: string;
  readonly hasLocks: boolean;
}

export type WorkerMessage =
  | WorkerStart
  | LeaderMessage
  /** What opens the file from here on. */
  | { readonly kind: "key"; readonly key: FileKey | null }
  /** Gives all free, for good. */
  | { readonly kind: "close" };

/** What a worker tells its tab, beside answers. */
export type WorkerEvent =
  | TabMessage
  /** It runs, and holds its lock. */
  | { readonly kind: "ready" }
  /** It cannot open the file, and does not try again. */
  | { readonly kind: "failed"; readonly error: ErrorInfo }
  /** It is not to be trusted any more; another is to be started. */
  | { readonly kind: "broken"; readonly error: ErrorInfo }
  | { readonly kind: "closed" };

export const allChannel = (name: string): string => `warren:${name}`;
export const peerChannel = (name: string, peer: string): string => `warren:${name}:${peer}`;
export const leaderLock = (name: string): string => `warren:${name}`;
/** Held by a tab, and by a worker, for as long as it lives. */
export const livenessLock = (name: string, peer: string): string => `warren:${name}:${peer}`;

/** A name for a tab or a worker: 64 random bits. */
export function newPeerId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
