/** Tests the JSON of the engine and the server, as converted for a page. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toReport, toSyncStatus } from "../../client/src/shared/wire-json.js";

test("a page gets the whole report, also of what is in sync and not shown", () => {
  const json = {
    sent_count: 1,
    received_count: 2,
    in_sync: true,
    reconciled: false,
    erased_count: 3,
    unscrubbed: null,
    conflicts_count: 4,
    hidden_rows_count: 5,
    renumbered_rows: [{ table: "t", old_key: 1, new_key: 2 }],
    merged_rows: [],
    set_aside_count: 6,
    missing_tables: ["t.stars"],
    rejected: { by_reason: { not_encrypted: 7, truncated: 1 }, timestamps: [] },
    rejected_count: 9,
    server_loss: { repaired_ms: 10, missing_count: null, devices_away: ["phone"] },
  };
  const report = toReport(JSON.stringify(json));
  assert.deepEqual(report, {
    sentCount: 1,
    receivedCount: 2,
    inSync: true,
    reconciled: false,
    erasedCount: 3,
    conflictsCount: 4,
    hiddenRowsCount: 5,
    renumberedRows: [{ table: "t", oldKey: 1, newKey: 2 }],
    mergedRows: [],
    setAsideCount: 6,
    missingTables: ["t.stars"],
    newRejectedCount: 8,
    rejectedCount: 9,
    serverLoss: { repairedMs: 10, devicesAway: ["phone"] },
  });
  const jsonNames = Object.keys(json).map(toCamelCase);
  const ownNames = Object.keys(report).filter((name) => !jsonNames.includes(name));
  assert.deepEqual(ownNames, ["newRejectedCount"], "other fields have the names of the JSON");
});

test("a page gets the server's side under the names of the JSON", () => {
  const counts = {
    server_messages_count: 1,
    total_messages_count: 2,
    pending_upload_count: 3,
    pending_download_count: 4,
    in_sync: false,
  };
  const named = Object.entries(counts).map(([name, value]) => [toCamelCase(name), value]);
  const expected = { ...Object.fromEntries(named), devices: [] } as unknown;
  assert.deepEqual(toSyncStatus(JSON.stringify({ ...counts, devices: [] })), expected);
});

function toCamelCase(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
