/** What `Replica.status` says, as far as this package needs it (`crates/replica-wasm/src/json.rs`). */
import type { OwnStatus } from "./messages.js";
import type { Replica } from "./engine.js";
import type { Standing } from "./syncing.js";

interface StatusJson {
  readonly sealed: boolean;
  /** Messages that the server has not acknowledged. */
  readonly unsent: number;
  /** Changes that the triggers noted and that are no messages yet. */
  readonly noted: number;
  readonly remote: RemoteJson | null;
}

interface RemoteJson {
  readonly server: string;
  readonly login: string;
  /** 0 if never. */
  readonly syncedMs: number;
  readonly equal: boolean;
}

export type FileStatus = Pick<OwnStatus, "account" | "sealed" | "unsent" | "syncedMs">;

export interface Read {
  readonly file: FileStatus;
  readonly standing: Standing;
}

export function readStatus(replica: Replica): Read {
  const json = JSON.parse(replica.status()) as StatusJson;
  const unsent = json.unsent + json.noted;
  const { sealed, remote } = json;
  if (remote === null || replica.token() === undefined) {
    return { file: { sealed, unsent }, standing: { hasAccount: false, unsent, equal: false } };
  }
  const { server, login, syncedMs, equal } = remote;
  const account = { server, login };
  const file = { sealed, unsent, account, ...(syncedMs > 0 ? { syncedMs } : {}) };
  return { file, standing: { hasAccount: true, unsent, equal } };
}
