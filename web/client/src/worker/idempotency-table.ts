/**
 * Which calls were done, so that none is done twice: `warren_call`, a local table in the file.
 *
 * A writing call is noted in the transaction of its write, with its answer if that is short. A tab
 * that lost its leader asks the next one again, and gets what is noted. A note goes when its tab
 * has said that it has the answer, or is gone, so there are as many as calls under way.
 */
import type { PackedRows } from "../shared/wasm-engine.js";
import type { ReplicaFile } from "./file/replica-file.js";
import { clientError } from "../shared/errors.js";
import type { RpcCall } from "../shared/tab-messages.js";
import { packedFromJson, packedToJson } from "../shared/packed-rows.js";

/** Longer answers are not kept: who asks again is told that the write was done. */
const ANSWER_CHARS_MAX = 65_536;

const TABLE = `CREATE TABLE IF NOT EXISTS warren_call (
  tab TEXT NOT NULL, number INTEGER NOT NULL, answer TEXT, PRIMARY KEY (tab, number)
) WITHOUT ROWID`;

export interface IdempotencyTable {
  /** Makes the table where it is missing, as in a file that replaced another one. */
  createIfMissing(): void;
  /** What the call was answered, if it was done. */
  findResult(call: RpcCall): PackedRows | undefined;
  /** In the transaction of the write. */
  recordResult(call: RpcCall, answer: PackedRows): void;
  /** Notes of other tabs than these go. */
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
      const sql = "SELECT answer FROM warren_call WHERE tab = ? AND number = ?";
      const found = file.run(sql, [call.tab, call.number]);
      if (found.kinds.length === 0) {
        return undefined;
      }
      if (found.texts === "") {
        throw clientError("answer_lost", "it was done, but its rows were too many to be kept");
      }
      return packedFromJson(found.texts);
    },
    recordResult(call, answer) {
      const forget = "DELETE FROM warren_call WHERE tab = ? AND number <= ?";
      file.run(forget, [call.tab, call.settled]);
      const json = packedToJson(answer, ANSWER_CHARS_MAX) ?? null;
      const insert = "INSERT INTO warren_call (tab, number, answer) VALUES (?, ?, ?)";
      file.run(insert, [call.tab, call.number, json]);
    },
    removeOtherTabs(tabs) {
      const marks = tabs.map(() => "?").join(", ");
      file.run(`DELETE FROM warren_call WHERE tab NOT IN (${marks})`, tabs);
    },
  };
}

/** An answer without rows. */
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
