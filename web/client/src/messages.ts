/**
 * What travels between tabs, and between a tab and its worker: Format 17.
 *
 * Channels of a database NAME: `warren:NAME` for all, `warren:NAME:OWNER` with calls to an owner,
 * `warren:NAME:TAB` with answers to a tab. A tab whose own worker is the owner uses that worker's
 * port for the latter two.
 */
import type { ErrorInfo, FileKey, Progress, Status } from "./api.js";
import type { Answered, CallName, Given } from "./calls.js";

/** Goes up when a message changes its meaning. */
export const VERSION = 3;

/** On the channel for all. */
export type ToAll =
  /** A tab asks who the owner is. */
  | { readonly kind: "where" }
  /** Here I am: the answer to `where`, and of itself when one becomes the owner. */
  | { readonly kind: "owner"; readonly owner: string; readonly version: number }
  /** These tables were written to. */
  | { readonly kind: "changed"; readonly tables: readonly string[] }
  /** The file has another key, or none. */
  | { readonly kind: "rekeyed"; readonly key: FileKey | null }
  /** The files are about to be erased: whoever uses them closes them. */
  | { readonly kind: "deleted" }
  | { readonly kind: "status"; readonly owner: string; readonly status: OwnStatus };

export type OwnStatus = Omit<Status, "isOwner">;

/** From a tab to the owner. */
export type ToOwner = Call | Cancel;

export interface Cancel {
  readonly kind: "cancel";
  readonly tab: string;
  readonly number: number;
}

export type Call = { readonly [K in CallName]: CallOf<K> }[CallName];

export interface CallOf<K extends CallName> {
  readonly kind: "call";
  readonly tab: string;
  /** Counts the tab's calls, from 1. */
  readonly number: number;
  /** All calls up to this number have their answers. */
  readonly settled: number;
  /** Whether another owner may have been asked this. */
  readonly again: boolean;
  readonly name: K;
  readonly given: Given<K>;
}

/** From the owner to a tab; `from` is the owner. */
export type ToTab = Answer | Refusal | Step;

export interface Answer {
  readonly kind: "answer";
  readonly from: string;
  readonly number: number;
  readonly value: Answered<CallName>;
}

export interface Refusal {
  readonly kind: "error";
  readonly from: string;
  readonly number: number;
  readonly error: ErrorInfo;
}

export interface Step {
  readonly kind: "progress";
  readonly from: string;
  readonly number: number;
  readonly progress: Progress;
}

/** What a worker is told by its tab, beside calls. */
export interface Start {
  readonly kind: "start";
  readonly name: string;
  readonly tab: string;
  readonly worker: string;
  readonly key?: FileKey;
  /** Where the wasm is, if not beside the worker. */
  readonly wasm?: string;
  readonly hasLocks: boolean;
}

export type ToWorker =
  | Start
  | ToOwner
  /** What opens the file from here on. */
  | { readonly kind: "key"; readonly key: FileKey | null }
  /** Gives all free, for good. */
  | { readonly kind: "close" };

/** What a worker tells its tab, beside answers. */
export type FromWorker =
  | ToTab
  /** It runs, and holds its lock. */
  | { readonly kind: "ready" }
  /** It cannot open the file, and does not try again. */
  | { readonly kind: "failed"; readonly error: ErrorInfo }
  /** It is not to be trusted any more; another is to be started. */
  | { readonly kind: "broken"; readonly error: ErrorInfo }
  | { readonly kind: "closed" };

export const allChannel = (name: string): string => `warren:${name}`;
export const peerChannel = (name: string, peer: string): string => `warren:${name}:${peer}`;
export const ownerLock = (name: string): string => `warren:${name}`;
/** Held by a tab, and by a worker, for as long as it lives. */
export const lifeLock = (name: string, peer: string): string => `warren:${name}:${peer}`;

/** A name for a tab or a worker: 64 random bits. */
export function newPeer(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
