/** Tests fractional positions, and how ties are resolved. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  place,
  positionAfter,
  positionBefore,
  positionsAfter,
  type PositionedRow,
} from "../../plan/src/data/fractional-order.js";

/** Sorts as SQLite does: by bytes, then by id. */
function ordered(rows: readonly PositionedRow[]): string[] {
  const compare = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
  return [...rows]
    .sort((a, b) => compare(a.position, b.position) || compare(a.id, b.id))
    .map((row) => row.id);
}

function placed(rows: readonly PositionedRow[], id: string, index: number): PositionedRow[] {
  const others = rows.filter((row) => row.id !== id);
  const changed = new Map(
    place(id, others[index - 1], others.slice(index)).map((row) => [row.id, row.position]),
  );
  const result = others.map((row) => ({ ...row, position: changed.get(row.id) ?? row.position }));
  return [
    ...result.slice(0, index),
    { id, position: changed.get(id) ?? "" },
    ...result.slice(index),
  ];
}

test("a row goes between any two others, and only it gets a new position", () => {
  let rows = positionsAfter(undefined, 5).map((position, index) => ({ id: `r${index}`, position }));
  for (let step = 0; step < 300; step += 1) {
    const index = (step * 7) % (rows.length + 1);
    const before = new Map(rows.map((row) => [row.id, row.position]));
    const next = placed(rows, `n${step}`, index);
    assert.deepEqual(
      ordered(next),
      next.map((row) => row.id),
    );
    for (const row of next) assert.equal(row.position, before.get(row.id) ?? row.position);
    rows = next;
  }
});

test("rows of one position are ordered by id, and make room for what goes between them", () => {
  const rows = [
    { id: "a", position: "a1" },
    { id: "b", position: "a1" },
    { id: "c", position: "a1" },
    { id: "d", position: "a2" },
  ];
  assert.deepEqual(ordered(rows), ["a", "b", "c", "d"]);
  for (let index = 0; index <= rows.length; index += 1) {
    const next = placed(rows, "x", index);
    assert.deepEqual(
      ordered(next),
      next.map((row) => row.id),
    );
    assert.equal(next.find((row) => row.id === "d")?.position, "a2");
  }
});

test("first and last, also of nothing", () => {
  assert.ok(positionBefore("a0") < "a0");
  assert.ok(positionAfter("a0") > "a0");
  assert.equal(positionBefore(undefined), positionAfter(undefined));
  const many = positionsAfter("a5", 10_000);
  assert.deepEqual([...many].sort(), many);
  assert.ok(many.every((position) => position > "a5" && position.length < 8));
});
