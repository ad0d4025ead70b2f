/** Tests `@warren/client` in a browser: the file's key, and the end of the file. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import type { FileKey } from "../client/src/index.js";
import { PASSWORD, bed } from "./harness.js";
import { SCHEMA, site, until, untilPhase } from "./client/site.js";

const here = bed();
const there = site(here);

interface FileKeyChange {
  readonly from: FileKey | null;
  readonly to: FileKey | null;
}

/** Changes the key; returns the code of the failure, or "done". */
function rekey(page: Page, change: FileKeyChange): Promise<string> {
  return page.evaluate(
    (given) =>
      db.rekey(given).then(
        () => "done",
        (error: { code: string }) => error.code,
      ),
    change,
  );
}

/** Opens the file with this key; returns the number of its items, or the code of the failure. */
function reopen(page: Page, key: string | null): Promise<number | string> {
  return page.evaluate(
    async ({ schema, key }) => {
      await db.close();
      try {
        const given = key === null ? {} : { key };
        globalThis.db = await warren.open({ name: "plan", schema, ...given });
      } catch (error) {
        return (error as { code: string }).code;
      }
      return (await db.sql`SELECT 1 FROM item`).length;
    },
    { schema: SCHEMA, key },
  );
}

test("a file gets a key, another one, and none again; everything stays", async () => {
  const login = await here.server.account("keys");
  const page = await there.openDatabase(await here.device());
  await page.evaluate(
    async (given) => {
      await db.sql`INSERT INTO item VALUES ('1', 'one')`;
      await db.signUp({ ...given, login: "of-the-keys", endToEndEncrypted: true });
    },
    { login, password: PASSWORD, deviceName: "one" },
  );
  await untilPhase(page, "inSync");
  const phrase = await page.evaluate(() => db.recoveryPhrase());
  assert.equal(await rekey(page, { from: "not it", to: "first" }), "wrong_key");
  assert.equal(await rekey(page, { from: null, to: "first" }), "done");
  await until(page, () => db.status.value.encrypted);
  assert.equal(await reopen(page, null), "wrong_key");
  assert.equal(await reopen(page, "first"), 1);
  const bytes = await page.evaluate(async () => [...(await db.export()).slice(0, 15)]);
  assert.notEqual(String.fromCharCode(...bytes), "SQLite format 3");
  assert.equal(await rekey(page, { from: null, to: "second" }), "wrong_key");
  assert.equal(await rekey(page, { from: "first", to: "second" }), "done");
  await page.evaluate(() => db.sql`INSERT INTO item VALUES ('2', 'two')`);
  assert.equal(await reopen(page, "first"), "wrong_key");
  assert.equal(await reopen(page, "second"), 2);
  assert.equal(await rekey(page, { from: "second", to: null }), "done");
  assert.equal(await reopen(page, null), 2);
  assert.equal(await page.evaluate(() => db.recoveryPhrase()), phrase);
  await untilPhase(page, "inSync");
  const devices = await page.evaluate(() => db.devices());
  assert.deepEqual(devices.map(({ name }) => name), ["one"]);
});

test("a worker that ends amid a change of the key leaves the old one or the new one", async () => {
  const page = await there.openDatabase(await here.device());
  await page.evaluate(() => db.sql`INSERT INTO item VALUES ('1', 'one')`);
  const outcomes = await page.evaluate(async (schema) => {
    const options = { name: "plan", schema };
    const another = new Uint8Array(32).fill(7);
    const opened = async (key: FileKey | null, worker?: string): Promise<typeof db> =>
      warren.open({
        ...options,
        ...(key === null ? {} : { key }),
        ...(worker === undefined ? {} : { assets: { worker } }),
      });
    const code = (work: Promise<unknown>): Promise<string> =>
      work.then(
        () => "done",
        (error: { code: string }) => error.code,
      );
    const counted = new Promise<number>((resolve) => {
      new BroadcastChannel("operations").onmessage = ({ data }) => resolve(data as number);
    });
    /** Stops all file operations after `count` of them; returns which key opens the files then. */
    const dieAfter = async (count: number): Promise<string> => {
      const dying = await opened(null, `/worker-dying.js?after=${count}`);
      const told = await code(dying.rekey({ from: null, to: another }));
      await dying.close();
      for (const key of [null, another]) {
        try {
          const found = await opened(key);
          const rows = await found.sql`SELECT 1 FROM item`;
          if (key !== null) await found.rekey({ from: key, to: null });
          await found.close();
          const which = key === null ? "old" : "new";
          return `${told === "done" ? "told" : "untold"} ${which} ${rows.length}`;
        } catch (error) {
          if ((error as { code: string }).code !== "wrong_key") throw error;
        }
      }
      return "no key opens it";
    };
    await db.close();
    const whole = await dieAfter(1_000_000);
    const total = await counted;
    const found = new Map<string, number>([[whole, 1]]);
    // Tests each of the last operations, in which the files change places, and some earlier ones.
    const last = Array.from({ length: Math.min(20, total) }, (_, i) => total - i - 1);
    const before = Array.from({ length: 6 }, (_, i) => Math.floor((i * total) / 6));
    for (const count of [...before, ...last]) {
      const outcome = await dieAfter(count);
      found.set(outcome, (found.get(outcome) ?? 0) + 1);
    }
    return [...found.keys()].sort();
  }, SCHEMA);
  const possible = ["told new 1", "untold new 1", "untold old 1"];
  assert.deepEqual(outcomes.filter((one) => !possible.includes(one)), []);
  assert.ok(outcomes.includes("told new 1") && outcomes.includes("untold old 1"), outcomes.join());
});

test("a deleted database is closed in all tabs, and nothing of it is left", async () => {
  const device = await here.device();
  const [one, two] = [await there.openDatabase(device), await there.openDatabase(device)];
  await one.evaluate(() => db.sql`INSERT INTO item VALUES ('1', 'one')`);
  await two.evaluate(() => db.delete());
  await untilPhase(one, "failed");
  const code = await one.evaluate(() =>
    db.sql`SELECT 1`.then(
      () => "done",
      (error: { code: string }) => error.code,
    ),
  );
  assert.equal(code, "deleted");
  const folders = await one.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    const names: string[] = [];
    for await (const name of (await root.getDirectoryHandle("warren")).keys()) names.push(name);
    return names;
  });
  assert.deepEqual(folders, []);
  assert.equal(await reopen(one, null), 0);
  // A database that cannot be opened is deleted, too.
  assert.equal(await rekey(one, { from: null, to: "forgotten" }), "done");
  await one.evaluate(() => db.close());
  await two.evaluate(() => warren.deleteDatabase("plan"));
  assert.equal(await reopen(two, null), 0);
});

test("a status that was on its way does not hide that the database was deleted", async () => {
  const device = await here.device();
  const [one, two] = [await there.openDatabase(device), await there.openDatabase(device)];
  await two.evaluate(async () => {
    const all = new BroadcastChannel("warren:plan");
    const status = new Promise<unknown>((resolve) => {
      all.onmessage = ({ data }: MessageEvent<{ kind: string }>) => {
        if (data.kind === "status") resolve(data);
      };
    });
    all.postMessage({ kind: "findLeader" });
    await db.sql`INSERT INTO item VALUES ('1', 'one')`;
    const late = await status;
    all.postMessage({ kind: "deleted" });
    all.postMessage(late);
  });
  await untilPhase(one, "failed");
});

test("what was deleted is told with its last values, synced or not", async () => {
  const page = await there.openDatabase(await here.device());
  const rows = await page.evaluate(async () => {
    await db.sql`INSERT INTO item VALUES ('1', 'one'), ('2', 'two'), ('3', 'three')`;
    await db.recordHistory();
    await db.sql`UPDATE item SET name = 'the first' WHERE id = '1'`;
    await db.recordHistory();
    await db.sql`DELETE FROM item WHERE id = '1'`;
    return [await db.deletedRows("item"), await db.deletedRows("item", { limit: 0 })];
  });
  assert.deepEqual(
    rows.map((list) => list.map(({ key, cells }) => [key, cells])),
    [[[["1"], { id: "1", name: "the first" }]], []],
  );
});

test("a hidden row is listed, and shown with another value, or deleted", async () => {
  const login = await here.server.account("hidden");
  const [one, two] = [
    await there.openDatabase(await here.device()),
    await there.openDatabase(await here.device(), {
      schema: "CREATE TABLE item (id TEXT PRIMARY KEY, name TEXT NOT NULL)",
    }),
  ];
  for (const page of [one, two]) {
    const given = { login, password: PASSWORD, deviceName: "", allowPlaintext: true };
    await page.evaluate((given) => db.signIn(given), given);
  }
  await one.evaluate(() => db.sql`INSERT INTO item VALUES ('1', NULL), ('2', NULL)`);
  await until(two, () => db.status.value.hiddenRowsCount === 2);
  const hiddenRows = await two.evaluate(() => db.hiddenRows());
  assert.deepEqual(
    hiddenRows.map(({ table, key, kind, cells }) => [table, key, kind, cells]),
    [
      ["item", ["1"], "constraint", { name: null }],
      ["item", ["2"], "constraint", { name: null }],
    ],
  );
  await two.evaluate(async ([first, second]) => {
    await db.resolveHiddenRow(first?.id ?? "", "name", "by two");
    await db.deleteHiddenRow(second?.id ?? "");
  }, hiddenRows);
  await until(one, async () => {
    const rows = await db.sql`SELECT id, name FROM item`;
    return rows.length === 1 && rows[0]?.["name"] === "by two";
  });
  await until(two, () => db.status.value.hiddenRowsCount === 0);
});

test("a hidden row is merged into the one that is shown", async () => {
  const login = await here.server.account("same");
  const schema = `
    CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE item (id TEXT PRIMARY KEY, tag TEXT REFERENCES tag)`;
  const options = { schema, track: ["tag", "item"], autoSync: false };
  const pages = [
    await there.openDatabase(await here.device(), options),
    await there.openDatabase(await here.device(), options),
  ];
  for (const [place, page] of pages.entries()) {
    const given = { login, password: PASSWORD, deviceName: "", allowPlaintext: true };
    await page.evaluate((given) => db.signIn(given), given);
    await page.evaluate(async (tag) => {
      await db.sql`INSERT INTO tag VALUES (${tag}, 'urgent')`;
      await db.sql`INSERT INTO item VALUES (${`item of ${tag}`}, ${tag})`;
    }, `tag ${place}`);
  }
  const [one, two] = pages as [(typeof pages)[0], (typeof pages)[0]];
  for (const page of [one, two, one]) {
    await page.evaluate(() => db.sync());
  }
  const [hiddenRow] = await one.evaluate(() => db.hiddenRows());
  assert.deepEqual([hiddenRow?.kind, hiddenRow?.sameAs], ["displaced", ["tag 1"]]);
  const code = await one.evaluate(
    (id) => db.deleteHiddenRow(id).then(String, (error: { code: string }) => error.code),
    hiddenRow?.id ?? "",
  );
  assert.equal(code, "referenced");
  await one.evaluate((id) => db.mergeHiddenRow(id), hiddenRow?.id ?? "");
  for (const page of [one, two]) {
    await page.evaluate(() => db.sync());
    const rows = await page.evaluate(() => db.sql`SELECT tag FROM item ORDER BY id`);
    assert.deepEqual(rows, [{ tag: "tag 1" }, { tag: "tag 1" }]);
    assert.deepEqual(await page.evaluate(() => db.hiddenRows()), []);
  }
});

test("a fault of the browser's files is told by its exception's name alone", async () => {
  const page = await there.open(await here.device());
  await until(page, () => "warren" in globalThis);
  const found = await page.evaluate(
    async ({ schema, faults }) => {
      const found: string[] = [];
      for (const fault of faults) {
        const worker = `/worker-failing.js?${new URLSearchParams(fault).toString()}`;
        try {
          const options = { name: fault.name.toLowerCase(), schema, assets: { worker } };
          const opened = await warren.open(options);
          found.push(opened.status.value.storage);
          await opened.close();
        } catch (error) {
          found.push((error as { code: string }).code);
        }
      }
      return found;
    },
    {
      schema: SCHEMA,
      faults: [
        { name: "QuotaExceededError", message: "NotAllowedError" },
        { name: "NotAllowedError", message: "QuotaExceededError: the disk is full" },
        { name: "UnknownError", message: "QuotaExceededError, NotAllowedError: the disk is full" },
        // Another worker has the file: the client tries again.
        { name: "NoModificationAllowedError", message: "QuotaExceededError", count: "3" },
        { name: "InvalidStateError", message: "QuotaExceededError", count: "3" },
      ],
    },
  );
  assert.deepEqual(found, ["disk_full", "memory", "storage_failed", "opfs", "opfs"]);
});
