/** Tests addresses of views, also truncated and garbled ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { viewFromHash, viewToHash } from "../../plan/src/data/views.js";

test("a list's address is read back; a broken one is none", () => {
  const view = { kind: "list", id: "a/b %é" } as const;
  assert.deepEqual(viewFromHash(viewToHash(view)), view);
  for (const hash of ["#/list/%E0%A4%A", "#/list/%", "#/list/", "#/nowhere", "#", ""]) {
    assert.equal(viewFromHash(hash), undefined, hash);
  }
});
