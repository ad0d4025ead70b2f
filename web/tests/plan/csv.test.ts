/** CSV as RFC 4180 has it, as spreadsheets write it, and back again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatCsv, parseCsv } from "../../plan/src/data/csv.js";
import { itemsFromCsv } from "../../plan/src/data/transfer.js";

test("quoted fields may hold separators, quotes and line ends", () => {
  const text = 'a,"b, ""c""\r\nd",e\r\n"",,\r\n';
  assert.deepEqual(parseCsv(text), [
    ["a", 'b, "c"\r\nd', "e"],
    ["", "", ""],
  ]);
});

test("line ends of any kind, with or without the last one; empty lines are no records", () => {
  const wanted = [
    ["a", "b"],
    ["c", "d"],
  ];
  for (const text of ["a,b\nc,d", "a,b\r\nc,d\r\n", "a,b\rc,d\r", "\n\na,b\n\nc,d\n\n"]) {
    assert.deepEqual(parseCsv(text), wanted);
  }
});

test("a separator at the end has an empty field after it", () => {
  assert.deepEqual(parseCsv("a,b,"), [["a", "b", ""]]);
  assert.deepEqual(parseCsv("a,\nb,"), [
    ["a", ""],
    ["b", ""],
  ]);
});

test("semicolons, tabs and a byte order mark are understood", () => {
  assert.deepEqual(parseCsv("\uFEFFa;b;c,d\ne;f"), [
    ["a", "b", "c,d"],
    ["e", "f"],
  ]);
  assert.deepEqual(parseCsv("a\tb\nc\td"), [
    ["a", "b"],
    ["c", "d"],
  ]);
  assert.deepEqual(parseCsv('"a;b;c",d\n'), [["a;b;c", "d"]]);
});

test("what is broken takes the rest, and loses nothing", () => {
  assert.deepEqual(parseCsv('a,"b\nc'), [["a", "b\nc"]]);
  assert.deepEqual(parseCsv('"a" x,b'), [["a x", "b"]]);
  assert.deepEqual(parseCsv(""), []);
});

test("what is written is read back as it was", () => {
  const records = [
    ["plain", "with, comma", 'with "quotes"', "two\nlines", ""],
    [""],
    ["", ""],
    ["\uFEFFmark", "semi;colon", " spaces "],
    ["one"],
  ];
  assert.deepEqual(parseCsv(formatCsv(records)), records);
});

/** `WARREN_FUZZ_SECONDS=3600` makes it a search. */
const FUZZ_SECONDS = Number(process.env["WARREN_FUZZ_SECONDS"] ?? 1);
const PARTS = [
  ...[",", ";", "\t", '"', '""', "\r", "\n", "\r\n"],
  ...["\uFEFF", "a", " ", "é", "\0", "\ud83d"],
];

test("whatever a file holds, it is read, and what was read is written and read back", () => {
  // Numerical Recipes' generator: the same files in each run.
  let state = 1;
  const dice = (sides: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
  const end = performance.now() + FUZZ_SECONDS * 1_000;
  while (performance.now() < end) {
    const text = Array.from({ length: dice(40) }, () => PARTS[dice(PARTS.length)]).join("");
    const records = parseCsv(text);
    assert.deepEqual(parseCsv(formatCsv(records)), records, JSON.stringify(text));
    assert.ok(itemsFromCsv(text).items.every(({ title }) => title !== ""), JSON.stringify(text));
  }
});

test("a first line that is longer than a regular expression's stack", () => {
  const [[field] = []] = parseCsv(`"${"x".repeat(20_000_000)}"`);
  assert.equal(field?.length, 20_000_000);
});

test("a header names the columns, in any order, by their usual names", () => {
  const { items, skipped } = itemsFromCsv(
    "Completed,Task,Due date,Project,Notes\nyes,Milk,2027-03-12,Home,two\n,Bread,,,\n,,,,\n",
  );
  assert.equal(skipped, 1);
  assert.deepEqual(items, [
    { title: "Milk", note: "two", due: "2027-03-12", list: "Home", done: true },
    { title: "Bread", note: "", due: null, list: undefined, done: false },
  ]);
});

test("without a header the columns are in their order", () => {
  const { items } = itemsFromCsv("Milk,two,12.03.2027,Home,0\nBread\n");
  assert.deepEqual(items, [
    { title: "Milk", note: "two", due: "2027-03-12", list: "Home", done: false },
    { title: "Bread", note: "", due: null, list: undefined, done: false },
  ]);
});
