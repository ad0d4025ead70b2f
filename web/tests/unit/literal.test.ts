/** Tests SQL literals, both ways; and the JSON of `warren --json`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SqlValue } from "../../client/src/api.js";
import { toConflicts, toHistory } from "../../client/src/shared/wire-json.js";
import { fromLiterals, toLiteral } from "../../client/src/shared/sql-literals.js";

test("values survive being literals", () => {
  const values: SqlValue[] = [
    null, 0, -7, 1.5, 1e300, 2n ** 60n, -(2n ** 63n), "", "it's, 'quoted'", "x'00'", "NULL",
    Uint8Array.of(), Uint8Array.of(0, 171, 255),
  ];
  assert.deepEqual(fromLiterals(values.map(toLiteral).join(", ")), values);
  assert.deepEqual(fromLiterals("inf, -inf, 1e-7"), [Infinity, -Infinity, 1e-7]);
  assert.deepEqual(fromLiterals("1, CAST(x'41ff' AS TEXT), 'b'"), [1, "A\ufffd", "b"]);
  assert.throws(() => fromLiterals("1; DROP TABLE t"), { code: "internal" });
});

test("history and conflicts have this package's types", () => {
  const cells = [{ column: "name", value: "'a'" }, { column: "done", value: "1" }];
  const entry = { timestamp: "t", changed_ms: 5, device_name: "d", deleted: false, cells };
  assert.deepEqual(toHistory(JSON.stringify([entry])), [
    {
      timestamp: "t",
      changedMs: 5,
      deviceName: "d",
      deleted: false,
      cells: { name: "a", done: 1 },
    },
  ]);
  const lost = { changed_ms: 1, device_name: "d", deleted: false, value: "'a'" };
  const winner = { changed_ms: 2, device_name: "e", deleted: true, value: null };
  const conflict = { id: "i", table: "t", key: "1, 'k'", column: "name", lost, winner };
  const [found] = toConflicts(JSON.stringify([conflict]));
  assert.deepEqual(found, {
    id: "i",
    table: "t",
    key: [1, "k"],
    lost: { deviceName: "d", changedMs: 1, deleted: false, cells: { name: "a" } },
    shown: { deviceName: "e", changedMs: 2, deleted: true, cells: {} },
  });
});
