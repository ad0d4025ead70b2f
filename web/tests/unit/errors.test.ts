/**
 * Tests the conversion of thrown values to codes: known codes, codes of a newer server, full
 * disks.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WarrenError } from "../../client/src/api.js";
import { toErrorInfo, toWarrenError } from "../../client/src/shared/errors.js";

/** Returns an error as the wasm module throws it. */
const coded = (code: string, message: string): Error => Object.assign(new Error(message), { code });

test("a code stays what it is, also one that this version does not know", () => {
  const own = new WarrenError("busy", "await some");
  assert.equal(toWarrenError(own), own);
  const newer = coded("something_new", "the words of the code");
  assert.deepEqual(toErrorInfo(newer), { code: "something_new", message: newer.message });
  assert.deepEqual(toErrorInfo(new Error("what?")), { code: "internal", message: "what?" });
});

test("a full disk of this device has one code, and the server's has its own", () => {
  const refused = new DOMException("no more", "QuotaExceededError");
  for (const full of [refused, coded("disk_full", "database or disk is full")]) {
    assert.equal(toErrorInfo(full).code, "disk_full", full.message);
  }
  for (const code of ["server_disk_full", "quota_exceeded"]) {
    assert.equal(toErrorInfo(coded(code, "the disk is full")).code, code);
  }
});

test("a message decides nothing", () => {
  const text = "QuotaExceededError: the disk is full";
  assert.equal(toErrorInfo(coded("storage_failed", text)).code, "storage_failed");
  assert.equal(toErrorInfo(new DOMException(text, "UnknownError")).code, "internal");
});
