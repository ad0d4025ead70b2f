/** Tests packed rows: from wasm to row objects. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  equalRows,
  packedFromJson,
  packedToJson,
  transfersOf,
  unpack,
} from "../../client/src/shared/packed-rows.js";
import { pack } from "./sqlite.js";

const ROWS = [
  [null, 1.5, "ä𝒳", Uint8Array.of(0, 255), 2n ** 60n],
  [7, "", "x", Uint8Array.of(), -(2n ** 63n)],
];
const COLUMNS = ["a", "b", "c", "d", "e"];

test("every storage class comes out as it went in", () => {
  const rows = unpack(pack(COLUMNS, ROWS));
  const named = (row: unknown[]): object =>
    Object.fromEntries(COLUMNS.map((name, at) => [name, row[at]]));
  const expected = ROWS.map(named);
  assert.deepEqual(rows, expected);
  assert.deepEqual(unpack(pack([], [])), []);
  assert.deepEqual(unpack(pack(["a"], [])), []);
});

test("rows are equal only if all cells are", () => {
  assert.ok(equalRows(pack(COLUMNS, ROWS), pack(COLUMNS, ROWS)));
  ROWS[0]?.forEach((_, at) => {
    const other = ROWS.map((row) => row.with(at, "other"));
    assert.ok(!equalRows(pack(COLUMNS, ROWS), pack(COLUMNS, other)), `column ${at}`);
  });
  // The same text, split at another position.
  assert.ok(!equalRows(pack(["a", "b"], [["ab", "c"]]), pack(["a", "b"], [["a", "bc"]])));
  assert.ok(!equalRows(pack(["a"], [[1]]), pack(["b"], [[1]])));
});

test("rows survive the record of answers, unless they are too long for it", () => {
  const packed = pack(COLUMNS, [...ROWS, [Infinity, 0, 0, 0, 0]], 3);
  const json = packedToJson(packed, 1_000);
  assert.ok(json !== undefined);
  assert.deepEqual(packedFromJson(json), packed);
  assert.equal(packedToJson(pack(["a"], [["x".repeat(1_000)]]), 1_000), undefined);
});

test("only whole buffers are handed over", () => {
  const packed = { ...pack(["a"], [[1]]), kinds: new Uint8Array(new ArrayBuffer(8), 2, 1) };
  const buffers = transfersOf({ packed, tables: [] });
  assert.ok(buffers.includes(packed.numbers.buffer as ArrayBuffer));
  assert.ok(!buffers.includes(packed.kinds.buffer));
});
