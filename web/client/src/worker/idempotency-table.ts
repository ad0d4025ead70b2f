/**
 * The idempotency table records which calls were done, so that none is done twice. It is
 * `warren_idempotency_key`, a local table in the file.
 *
 * A writing call is recorded in the transaction of its write, with its result if that is short. A
 * tab that lost its leader sends the call to the next one, and gets the recorded result. An entry
 * is deleted when its tab has confirmed the answer, or is gone. So there are as many entries as
 * pending calls.
 */
import { WarrenError } from "../api.js";
import type { PackedRows } from "../shared/wasm-engine.js";
import type { ReplicaFile } from "./file/replica-file.js";
import type { RpcCall } from "../shared/tab-messages.js";
import { packedFromJson, packedToJson } from "../shared/packed-rows.js";

/**
 * The longest result that is recorded: for a longer one, a repeated call only learns that the
 * write was done.
 */
const RESULT_CHARS_MAX = 65_536;

const TABLE = `CREATE TABLE IF NOT EXISTS warren_idempotency_key (
  tab TEXT NOT NULL, number INTEGER NOT NULL, result TEXT, PRIMARY KEY (tab, number)
) WITHOUT ROWID`;

export interface IdempotencyTable {
  /** Creates the table if it is missing, as in a file that replaced another one. */
  createIfMissing(): void;
  /** Returns the result of the call, if it was done. */
  findResult(call: RpcCall): PackedRows | undefined;
  /** Records the result of the call; runs in the transaction of the write. */
  recordResult(call: RpcCall, result: PackedRows): void;
  /** Deletes the entries of all tabs except these. */
  removeOtherTabs(tabs: readonly string[]): void;
}

export function openIdempotencyTable(file: ReplicaFile): IdempotencyTable {
  const createIfMissing = (): void => {
    file.run(TABLE, []);
  };
  createIfMissing();
  return {
    createIfMissing,
    findResult(call) {
      const sql = "SELECT result FROM warren_idempotency_key WHERE tab = ? AND number = ?";
      const found = file.run(sql, [call.tab, call.number]);
      if (found.kinds.length === 0) {
        return undefined;
      }
      if (found.texts === "") {
        const message = "the call was done, but its result was too large to keep";
        throw new WarrenError("result_lost", message);
      }
      return packedFromJson(found.texts);
    },
    recordResult(call, result) {
      const forget = "DELETE FROM warren_idempotency_key WHERE tab = ? AND number <= ?";
      file.run(forget, [call.tab, call.ackedUpTo]);
      const json = packedToJson(result, RESULT_CHARS_MAX) ?? null;
      const insert = "INSERT INTO warren_idempotency_key (tab, number, result) VALUES (?, ?, ?)";
      file.run(insert, [call.tab, call.number, json]);
    },
    removeOtherTabs(tabs) {
      const marks = tabs.map(() => "?").join(", ");
      file.run(`DELETE FROM warren_idempotency_key WHERE tab NOT IN (${marks})`, tabs);
    },
  };
}

/** Returns a result without rows. */
export function rowlessResult(changes: number): PackedRows {
  return {
    columns: [],
    kinds: new Uint8Array(),
    numbers: new Float64Array(),
    integers: new BigInt64Array(),
    texts: "",
    textLengths: new Uint32Array(),
    blobs: new Uint8Array(),
    blobLengths: new Uint32Array(),
    changes,
  };
}
