/** Tests CSV: as in RFC 4180, as spreadsheets write it, and back again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatCsv, parseCsv as parseRecords } from "../../plan/src/data/csv.js";
import { UnreadableFile } from "../../plan/src/data/import/unreadable.js";

const parseCsv = (text: string): (readonly string[])[] =>
  parseRecords(text).map(({ fields }) => fields);

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

test("Excel's first line may name the separator", () => {
  assert.deepEqual(parseRecords("sep=;\r\na,b;c\r\n"), [{ line: 2, fields: ["a,b", "c"] }]);
});

test("records know their lines, whatever the line ends", () => {
  const text = 'a\r\n\r\n"two\nlines"\rb\n';
  assert.deepEqual(
    parseRecords(text).map(({ line }) => line),
    [1, 3, 5],
  );
});

test("a quote that is not closed is told with its line, and nothing is swallowed", () => {
  const openQuote = (line: number): object => ({ flaw: { kind: "openQuote", line } });
  assert.throws(() => parseRecords('a,"b\nc'), openQuote(1));
  assert.throws(() => parseRecords('title,note\nMilk,\nBread,"half\nEggs,\n'), openQuote(3));
  // The quote of a later line closes the field, in the middle of that line.
  assert.throws(() => parseRecords('title\nMilk,"half\n"Bread",x\n'), openQuote(2));
  assert.throws(() => parseRecords('"'), UnreadableFile);
  assert.deepEqual(parseCsv('"a" x,b'), [["a x", "b"]]);
  assert.deepEqual(parseCsv('a 5" pipe,b'), [['a 5" pipe', "b"]]);
  assert.deepEqual(parseCsv(""), []);
});

test("what is written is read back as it was", () => {
  const records = [
    ["plain", "with, comma", 'with "quotes"', "two\nlines", ""],
    [""],
    ["", ""],
    ["\uFEFFmark", "semi;colon", " spaces "],
    ["one"],
    ["sep=;"],
  ];
  assert.deepEqual(parseCsv(formatCsv(records)), records);
});

test("a first line that is longer than a regular expression's stack", () => {
  const [[field] = []] = parseCsv(`"${"x".repeat(20_000_000)}"`);
  assert.equal(field?.length, 20_000_000);
});
