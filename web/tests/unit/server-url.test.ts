/** Tests the form of a server's address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toServerUrl } from "../../client/src/shared/server-url.js";

const ORIGIN = "https://app.example";

test("one server has one URL", () => {
  for (const [text, url] of [
    ["https://sync.example", "https://sync.example"],
    ["HTTPS://Sync.Example//", "https://sync.example"],
    ["http://127.0.0.1:4600/", "http://127.0.0.1:4600"],
    ["https://sync.example:443/a/", "https://sync.example/a"],
    [ORIGIN, ORIGIN],
    ["/", ORIGIN],
    ["/warren/", `${ORIGIN}/warren`],
  ] as const) {
    assert.equal(toServerUrl(text, ORIGIN), url);
  }
});

test("other texts are refused", () => {
  for (const text of [
    "",
    "localhost",
    "localhost:4600",
    "ftp://sync.example",
    "http://",
    "a/b",
    "https://ada@sync.example",
    "https://sync.example?a=b",
    "/warren#top",
  ]) {
    assert.throws(() => toServerUrl(text, ORIGIN), { code: "invalid_argument" }, text);
  }
});
