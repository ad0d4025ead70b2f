/** What the engine says in JSON, as a page is told it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toReport } from "../../client/src/shared/wire-json.js";

test("what is equal and not shown, or not sent, is told to the page", () => {
  const report = toReport(
    JSON.stringify({
      sent: 1,
      received: 2,
      equal: true,
      repaired: false,
      erased: 3,
      unscrubbed: null,
      lost: 4,
      held: 5,
      renumbered: [],
      joined: [],
      set_aside: 6,
      unknown: ["t.stars"],
      refused: { by_reason: { not_encrypted: 7, truncated: 1 }, in_all: 9, timestamps: [] },
      server_loss: { repaired_ms: 10, missing_count: null, devices_away: ["phone"] },
    }),
  );
  assert.deepEqual(report, {
    sent: 1,
    received: 2,
    equal: true,
    repaired: false,
    erased: 3,
    lost: 4,
    held: 5,
    renumbered: [],
    joined: [],
    setAside: 6,
    unknown: ["t.stars"],
    refused: 8,
    refusedInAll: 9,
    serverLoss: { repairedMs: 10, devicesAway: ["phone"] },
  });
});
