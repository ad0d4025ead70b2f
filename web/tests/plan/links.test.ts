/** Tests finding the addresses in a note and the sentence around them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { linksIn } from "../../plan/src/data/links.js";

test("addresses are found without what the sentence has after them, each once", () => {
  const text =
    "See https://example.org/a_(b), (http://example.org/x). HTTPS://EXAMPLE.ORG/y!\n" +
    "https://example.org/a_(b) and <https://example.org/?q=1&r=2#z>";
  assert.deepEqual(linksIn(text), [
    "https://example.org/a_(b)",
    "http://example.org/x",
    "HTTPS://EXAMPLE.ORG/y",
    "https://example.org/?q=1&r=2#z",
  ]);
});

test("nothing that runs is an address", () => {
  assert.deepEqual(linksIn("javascript:alert(1) data:text/html,x http:// https://"), []);
});
