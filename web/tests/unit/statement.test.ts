/** Tests statements: bound parameters, refused values, and kinds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TemplateValue } from "../../client/src/api.js";
import { fragment, identifier } from "../../client/src/tab/sql-fragment.js";
import { fromTemplate, validateStatement } from "../../client/src/tab/statement.js";
import { statementKind } from "../../client/src/worker/statement-kind.js";

const statement = (
  text: TemplateStringsArray,
  ...values: TemplateValue[]
): ReturnType<typeof fromTemplate> => fromTemplate(text, values);

test("values become bound parameters", () => {
  assert.deepEqual(statement`SELECT * FROM t WHERE a = ${"x"} AND b > ${2n}`, {
    sql: "SELECT * FROM t WHERE a = ? AND b > ?",
    parameters: ["x", 2n],
  });
});

test("a list is a list of parameters, a date its text, and a name is quoted", () => {
  const day = new Date(Date.UTC(2026, 10, 24, 9, 30));
  const column = identifier('a "b"');
  const all = [1, "x", day];
  const made = statement`SELECT ${column} FROM t WHERE a IN ${all} AND b IN ${[]} AND day > ${day}`;
  assert.deepEqual(made, {
    sql: 'SELECT "a ""b""" FROM t WHERE a IN (?, ?, ?) AND b IN () AND day > ?',
    parameters: [1, "x", "2026-11-24T09:30:00.000Z", "2026-11-24T09:30:00.000Z"],
  });
  // A value from JSON is not an identifier.
  const like = { sql: "a; DROP TABLE t", parameters: [] };
  assert.throws(() => statement`SELECT ${like}`, { code: "invalid_argument" });
  const nested = [[1]] as unknown as number[];
  assert.throws(() => statement`SELECT ${nested}`, { code: "invalid_argument" });
  assert.throws(() => identifier("a\0b"), { code: "invalid_argument" });
});

test("fragments bring their own parameters, in the order of the text", () => {
  const named = fragment`name LIKE ${"a%"}`;
  const either = fragment`(${named} OR id IN ${[1, 2]})`;
  const filter = [either, fragment`done = ${false}`].reduce((a, b) => fragment`${a} AND ${b}`);
  const none = fragment``;
  const made = statement`SELECT ${identifier("id")} FROM t WHERE ${filter} ${none}LIMIT ${5}`;
  assert.deepEqual(made, {
    sql: 'SELECT "id" FROM t WHERE (name LIKE ? OR id IN (?, ?)) AND done = ? LIMIT ?',
    parameters: ["a%", 1, 2, false, 5],
  });
  const call = fragment as unknown as (...given: unknown[]) => unknown;
  for (const given of ["done = 0", ["done = 0"]]) {
    assert.throws(() => call(given), { code: "invalid_argument" });
  }
  const undefinedIn = fragment`done = ${undefined as unknown as null}`;
  assert.throws(() => statement`SELECT ${undefinedIn}`, /parameter 1 is undefined/);
});

test("what SQLite has no value for is refused by name", () => {
  const refused = (value: unknown): void => {
    assert.throws(() => validateStatement("SELECT ?", [value as null]), {
      code: "invalid_argument",
    });
  };
  [undefined, {}, [], new Date(Number.NaN), () => 1, Symbol("s")].forEach(refused);
  const second = [1, undefined as unknown as null];
  assert.throws(() => validateStatement("SELECT ?", second), /2 is undefined.*null/);
  assert.doesNotThrow(() => validateStatement("", [null, 1, 1n, "a", true, Uint8Array.of(1)]));
});

test("statements are told apart by their first word", () => {
  const kinds = {
    reads: [
      "SELECT 1",
      " -- a\n/* b */ select 1;",
      "VALUES (1)",
      "EXPLAIN DELETE FROM t",
      "SELECT 1; --",
    ],
    writes: [
      "INSERT INTO t VALUES (1)",
      "WITH a AS (SELECT 1) DELETE FROM t",
      "SELECT 1; DELETE FROM t",
      "CREATE TABLE t (a)",
      "/* SELECT */ DELETE FROM t",
      "",
    ],
    bare: ["PRAGMA cache_size", "vacuum", "ATTACH 'a' AS b", "DETACH b"],
    controls: [";BEGIN", "COMMIT", "end", "ROLLBACK", "ROLLBACK TRANSACTION"],
    savepoint: ["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a", "rollback transaction to a"],
  };
  for (const [kind, statements] of Object.entries(kinds)) {
    statements.forEach((sql) => assert.equal(statementKind(sql), kind, sql));
  }
});
