/** Tests that a search finds words regardless of case and of the marks on letters. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createSearchIndex, type SearchableItem } from "../../plan/src/data/search.js";

const TITLES = [
  "TURNÜBUNG",
  "МОЛОКО",
  "ΣΊΣΥΦΟΣ",
  "Café réservé",
  "50% off_now",
  "日本語",
  "ＡＢＣ",
];
const ROWS: readonly SearchableItem[] = TITLES.map((title, key) => ({
  key,
  title,
  note: `n${key}`,
}));

function found(text: string): (string | undefined)[] {
  return createSearchIndex()
    .find(ROWS, text)
    .map((key) => TITLES[key]);
}

test("case and marks make no difference, in any alphabet", () => {
  assert.deepEqual(found("übung"), ["TURNÜBUNG"]);
  assert.deepEqual(found("ubung"), ["TURNÜBUNG"]);
  assert.deepEqual(found("молоко"), ["МОЛОКО"]);
  assert.deepEqual(found("σίσυφος"), ["ΣΊΣΥΦΟΣ"]);
  assert.deepEqual(found("cafe RESERVE"), ["Café réservé"]);
  assert.deepEqual(found("本"), ["日本語"]);
  assert.deepEqual(found("abc"), ["ＡＢＣ"]);
});

test("every word has to be there, in the title or the note, and is taken as it is", () => {
  assert.deepEqual(found(" n1  моло "), ["МОЛОКО"]);
  assert.deepEqual(found("n2 моло"), []);
  assert.deepEqual(found("0%"), ["50% off_now"]);
  assert.deepEqual(found("5_%"), []);
  assert.deepEqual(found("offn4"), []);
});

test("an item that was changed is found by what it is now", () => {
  const index = createSearchIndex();
  assert.deepEqual(index.find([{ key: 1, title: "Milk", note: "" }], "milk"), [1]);
  const later = [{ key: 1, title: "Bread", note: "" }];
  assert.deepEqual(index.find(later, "milk"), []);
  assert.deepEqual(index.find(later, "bread"), [1]);
});
