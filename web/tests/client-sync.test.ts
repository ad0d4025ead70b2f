/** Tests `@warren/client` with a server: who receives what, and which errors are reported. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, test } from "node:test";
import type { SignInOptions } from "@warren/client";
import type { Page } from "playwright-core";
import { PASSWORD, bed } from "./harness.js";
import { SCHEMA, site, until, untilPhase } from "./client/site.js";

const here = bed();
const there = site(here);

afterEach(() => {
  there.isAway = false;
});

/** Opens a device of the account, with the table. */
async function signedIn(login: string, deviceName: string, worker?: string): Promise<Page> {
  const browser = await here.device();
  browser.expectErrors(/Failed to load resource/);
  const options = worker === undefined ? {} : { assets: { worker } };
  const page = await there.openDatabase(browser, options);
  const given = { login, password: PASSWORD, deviceName, allowPlaintext: true };
  await page.evaluate((given: SignInOptions) => db.signIn(given), given);
  return page;
}

function add(page: Page, id: string, name: string): Promise<unknown> {
  const insert = (row: { id: string; name: string }): Promise<unknown> =>
    db.sql`INSERT INTO item VALUES (${row.id}, ${row.name})`;
  return page.evaluate(insert, { id, name });
}

async function names(page: Page): Promise<unknown[]> {
  return page.evaluate(async () =>
    (await db.sql`SELECT name FROM item ORDER BY name`).map(({ name }) => name),
  );
}

test("two browsers and a native replica come to hold the same rows, by themselves", async () => {
  const login = await here.server.account("ada");
  const one = await signedIn(login, "one");
  const two = await signedIn(login, "two");
  await add(one, "1", "by one");
  await add(two, "2", "by two");
  await until(one, async () => (await db.sql`SELECT 1 FROM item`).length === 2);
  await until(two, async () => (await db.sql`SELECT 1 FROM item`).length === 2);

  const native = join(here.server.folder, "native.db");
  const account = ["--server", here.server.address, "--login", login, "--device-name", "native"];
  const password = ["--password-file", join(here.server.folder, "password.txt")];
  await here.server.warren("clone", native, ...account, ...password);
  const file = new DatabaseSync(native);
  file.exec("UPDATE item SET name = 'by the native one' WHERE id = '1'");
  const told = one.evaluate(
    () =>
      new Promise<void>((resolve) => {
        db.live<{ name: string }>`SELECT name FROM item WHERE id = '1'`(([row]) => {
          if (row?.name === "by the native one") {
            resolve();
          }
        });
      }),
  );
  await here.server.warren("sync", native);
  await told;
  await untilPhase(two, "inSync");
  const rows = file.prepare("SELECT name FROM item ORDER BY name").all();
  file.close();
  assert.deepEqual(rows.map(({ name }) => name), ["by the native one", "by two"]);
  assert.deepEqual(await names(one), ["by the native one", "by two"]);

  const syncStatus = await two.evaluate(() => db.syncStatus());
  assert.equal(syncStatus.inSync, true);
  assert.deepEqual(syncStatus.devices.map(({ name, isCurrent }) => [name, isCurrent]), [
    ["one", false],
    ["two", true],
    ["native", false],
  ]);
  const history = await two.evaluate(() => db.history("item", "1"));
  assert.deepEqual(
    history.map(({ deviceName, cells }) => [deviceName, cells["name"]]),
    [["one", "by one"], ["native", "by the native one"]],
  );
});

test("a browser that reads responses into memory of its own syncs like others", async () => {
  const login = await here.server.account("byob");
  const one = await signedIn(login, "one");
  const two = await signedIn(login, "two", "/worker-without-byob.js");
  await add(one, "1", "by one");
  await until(two, async () => (await db.sql`SELECT 1 FROM item`).length === 1);
  await add(two, "2", "by two");
  await until(one, async () => (await db.sql`SELECT 1 FROM item`).length === 2);
});

/** Lets two pages change one item's name while the server is unreachable. */
async function meetApart(one: Page, two: Page, names: readonly [string, string]): Promise<void> {
  const rename = (page: Page, name: string): Promise<unknown> =>
    page.evaluate((to) => db.sql`UPDATE item SET name = ${to}`, name);
  there.isAway = true;
  await rename(one, names[0]);
  await rename(two, names[1]);
  await untilPhase(one, "offline");
  there.isAway = false;
  await untilPhase(one, "inSync");
  await untilPhase(two, "inSync");
  await until(one, async () => (await db.conflicts()).length === 1);
}

test("what is written to a table after it was rebuilt or got a column is synced", async () => {
  const login = await here.server.account("moving");
  const [one, two] = [await signedIn(login, "one"), await signedIn(login, "two")];
  await add(one, "1", "one");
  await until(two, async () => (await db.sql`SELECT 1 FROM item`).length === 1);

  await one.evaluate(async () => {
    await db.sql`CREATE TABLE rebuilt (id TEXT PRIMARY KEY, name TEXT, note TEXT)`;
    await db.sql`INSERT INTO rebuilt SELECT id, name, NULL FROM item`;
    await db.sql`DROP TABLE item`;
    await db.sql`ALTER TABLE rebuilt RENAME TO item`;
    await db.sql`UPDATE item SET name = 'of the new table' WHERE id = '1'`;
  });
  await until(two, async () => {
    const rows = await db.sql`SELECT 1 FROM item WHERE name = 'of the new table'`;
    return rows.length === 1;
  });

  await two.evaluate(async () => {
    await db.sql`ALTER TABLE item ADD COLUMN note TEXT`;
    await db.sql`UPDATE item SET note = 'of the new column' WHERE id = '1'`;
  });
  await until(one, async () => {
    const rows = await db.sql`SELECT 1 FROM item WHERE note = 'of the new column'`;
    return rows.length === 1;
  });
});

test("a database signs in to its own account only, and imports no file of another", async () => {
  const [login, other] = [await here.server.account("owner"), await here.server.account("next")];
  const page = await signedIn(login, "one");
  await add(page, "1", "of the owner");
  await untilPhase(page, "inSync");
  const next = await signedIn(other, "two");
  const file = await next.evaluate(async () => [...(await db.export())]);
  const codes = await page.evaluate(
    async ([taken, password, file]) => {
      const calls = [
        () => db.signIn({ login: taken, password }),
        () => db.signUp({ login: "third", password }),
        () => db.import(Uint8Array.from(file)),
        () => db.signOut(),
        () => db.signIn({ login: taken, password }),
        () => db.signIn({ login: "OWNER", password }),
      ];
      const codes = [];
      for (const call of calls) {
        codes.push(await call().then(() => "done", (error: { code: string }) => error.code));
      }
      return codes;
    },
    [other, PASSWORD, file] as const,
  );
  const differs = "account_differs";
  assert.deepEqual(codes, [differs, differs, differs, "done", differs, "done"]);
  // The refused sign-up has created no account.
  await here.server.account("third");
  await untilPhase(page, "inSync");
  assert.deepEqual(await names(page), ["of the owner"]);
  await untilPhase(next, "inSync");
  assert.deepEqual(await names(next), []);
});

test("edits that are lost are listed, one is put back, and one let be", async () => {
  const login = await here.server.account("conflicts");
  const one = await signedIn(login, "one");
  const two = await signedIn(login, "two");
  await add(one, "1", "at first");
  await until(two, async () => (await db.sql`SELECT 1 FROM item`).length === 1);
  await meetApart(one, two, ["by one", "by two, later"]);
  const [conflict] = await one.evaluate(() => db.conflicts());
  assert.ok(conflict !== undefined);
  assert.deepEqual([conflict.key, conflict.lost.cells, conflict.shown.cells], [
    ["1"],
    { name: "by one" },
    { name: "by two, later" },
  ]);
  await one.evaluate((id) => db.restoreLostEdit(id), conflict.id);
  await until(two, async () => (await db.sql`SELECT name FROM item`)[0]?.["name"] === "by one");
  await meetApart(one, two, ["again by one", "again by two"]);
  await one.evaluate(async () => {
    for (const { id } of await db.conflicts()) await db.dismissLostEdit(id);
  });
  await until(two, async () => (await db.conflicts()).length === 0);
  assert.deepEqual(await two.evaluate(() => db.sql`SELECT name FROM item`), [
    { name: "again by two" },
  ]);
});

test("typing over what arrived meanwhile lists it as lost, on both devices", async () => {
  const login = await here.server.account("drafts");
  const one = await signedIn(login, "one");
  const two = await signedIn(login, "two");
  await add(one, "1", "at first");
  await until(two, async () => (await db.sql`SELECT 1 FROM item`).length === 1);
  await two.evaluate(() => db.sql`UPDATE item SET name = 'by two'`);
  await until(one, async () => (await db.sql`SELECT name FROM item`)[0]?.["name"] === "by two");
  const outcomes = await one.evaluate(async () => [
    await db.edit("item", ["1"], "name", "by one", { seen: "at first" }),
    await db.edit("item", ["1"], "name", "by one again", { seen: "by one" }),
    await db.edit("item", ["2"], "name", "nobody's", { seen: "" }),
  ]);
  assert.deepEqual(outcomes, ["unseen", "written", "missing"]);
  await until(two, async () => (await db.conflicts()).length === 1);
  const [conflict] = await two.evaluate(() => db.conflicts());
  assert.deepEqual([conflict?.lost.cells, conflict?.shown.cells], [
    { name: "by two" },
    { name: "by one again" },
  ]);
  assert.equal(
    await one.evaluate(() =>
      db.edit("item", ["1"], "nothing", "", { seen: "" }).catch(({ code }) => code as string),
    ),
    "untrackable",
  );
});

test("what a native device erases is on no page of a browser's file", async () => {
  const login = await here.server.account("erasing");
  const page = await signedIn(login, "one");
  const secret = "a secret that was pasted here";
  await add(page, "1", secret);
  await add(page, "2", "kept");
  await page.evaluate(() => db.sync());
  await page.evaluate(() => db.sql`UPDATE item SET name = 'changed' WHERE id = '1'`);
  await page.evaluate(() => db.sync());
  const holds = (): Promise<boolean> =>
    page.evaluate(async (secret) => {
      const text = new TextDecoder("latin1").decode(await db.export());
      return text.includes(secret);
    }, secret);
  assert.ok(await holds());

  const native = join(here.server.folder, "erasing.db");
  const account = ["--server", here.server.address, "--login", login, "--device-name", "native"];
  const password = ["--password-file", join(here.server.folder, "password.txt")];
  await here.server.warren("clone", native, ...account, ...password);
  const cell = ["item", "1", "--column", "name"];
  await here.server.warren("erase", native, ...cell, "--yes", ...password);
  await until(page, async () => {
    const { inSync } = await db.sync();
    return inSync && (await db.history("item", "1"))[0]?.cells["name"] === "(erased)";
  });
  const { unscrubbed } = await page.evaluate(() => db.sync());
  assert.equal(unscrubbed, undefined);
  assert.equal(await holds(), false);
  assert.deepEqual(await names(page), ["changed", "kept"]);
});

test("while the server is away changes wait, and go when it is back", async () => {
  const login = await here.server.account("away");
  const page = await signedIn(login, "one");
  await untilPhase(page, "inSync");
  there.isAway = true;
  await add(page, "1", "offline");
  const state = await untilPhase(page, "offline");
  assert.ok(state.phase === "offline" && state.error.code === "unreachable" && state.retryMs > 0);
  // The first failure may belong to a sync that began before the change.
  await until(page, () => db.status.value.unsentCount === 1);
  await page.reload();
  await page.waitForFunction(() => "warren" in globalThis);
  await page.evaluate(async (schema) => {
    globalThis.db = await warren.open({ name: "plan", schema });
  }, SCHEMA);
  await untilPhase(page, "offline");
  assert.deepEqual(await names(page), ["offline"]);
  there.isAway = false;
  await untilPhase(page, "inSync");
  assert.equal(await page.evaluate(() => db.status.value.unsentCount), 0);
});

test("a revoked device says so, keeps its changes, and sends them after a sign-in", async () => {
  const login = await here.server.account("revoked");
  const one = await signedIn(login, "one");
  const two = await signedIn(login, "two");
  await add(one, "1", "before");
  await until(two, async () => (await db.sql`SELECT 1 FROM item`).length === 1);
  await two.evaluate(async () => {
    const other = (await db.devices()).find(({ isCurrent }) => !isCurrent);
    await db.revokeDevice(other?.id ?? "");
  });
  const state = await untilPhase(one, "failed");
  assert.ok(state.phase === "failed" && state.error.code === "invalid_token");
  await add(one, "2", "while revoked");
  const again: SignInOptions = { login, password: PASSWORD, deviceName: "one again" };
  await one.evaluate((given) => db.signIn(given), again);
  await until(two, async () => (await db.sql`SELECT 1 FROM item`).length === 2);
  await one.evaluate(() => db.signOut());
  assert.equal((await untilPhase(one, "local")).phase, "local");
  assert.deepEqual(await names(one), ["before", "while revoked"]);
  const devices = await two.evaluate(() => db.devices());
  assert.deepEqual(devices.map(({ name }) => name), ["two"]);
});

test("a password is changed; the old one is refused, and devices stay or go", async () => {
  const login = await here.server.account("password");
  const page = await signedIn(login, "one");
  const other = await signedIn(login, "two");
  await page.evaluate(
    (password) => db.changePassword({ password, newPassword: "another password" }),
    PASSWORD,
  );
  const refused = await page.evaluate(
    (given) =>
      db.signIn(given).then(
        () => "done",
        (error: { code: string }) => error.code,
      ),
    { login, password: PASSWORD, deviceName: "" },
  );
  assert.equal(refused, "wrong_password");
  assert.equal((await page.evaluate(() => db.sync())).inSync, true);
  assert.equal((await other.evaluate(() => db.sync())).inSync, true);
  await page.evaluate(
    (newPassword) =>
      db.changePassword({ password: "another password", newPassword, revokeOthers: true }),
    PASSWORD,
  );
  const devices = await page.evaluate(() => db.devices());
  assert.deepEqual(devices.map(({ name }) => name), ["one"]);
});

const SECRET = "nobody may read this";

test("end to end: traffic has no plain text, and other words open nothing", async () => {
  const login = await here.server.account("encrypted");
  const browser = await here.device();
  const one = await there.openDatabase(browser);
  const traffic: Buffer[] = [];
  there.traffic = traffic;
  const words = await one.evaluate(() => db.createRecoveryPhrase());
  assert.equal(words.split(" ").length, 24);
  await add(one, "1", SECRET);
  const credentials: SignInOptions = { login, password: PASSWORD, deviceName: "one" };
  await one.evaluate((given) => db.signIn(given), credentials);
  await untilPhase(one, "inSync");
  assert.equal(await one.evaluate(() => db.status.value.endToEndEncrypted), true);

  const two = await signedIn(login, "two");
  const failed = await untilPhase(two, "failed");
  assert.ok(failed.phase === "failed" && failed.error.code === "recovery_phrase_required");
  assert.deepEqual(await names(two), []);
  await two.evaluate((given) => db.enterRecoveryPhrase(given), words);
  await until(two, async () => (await db.sql`SELECT 1 FROM item`).length === 1);
  assert.deepEqual(await names(two), [SECRET]);

  const three = await there.openDatabase(await here.device());
  await three.evaluate(() => db.createRecoveryPhrase());
  await three.evaluate((given) => db.signIn(given), { ...credentials, deviceName: "three" });
  const wrong = await untilPhase(three, "failed");
  assert.ok(wrong.phase === "failed" && wrong.error.code === "wrong_recovery_phrase");

  const seen = Buffer.concat(traffic);
  assert.ok(seen.length > 1_000);
  assert.equal(seen.includes(SECRET), false);
});

test("progress is told, and a sync is cancelled by its signal", async () => {
  const login = await here.server.account("progress");
  const one = await signedIn(login, "one");
  await untilPhase(one, "inSync");
  const [stages, report] = await one.evaluate(async () => {
    const lists = Array.from({ length: 15_000 }, (_, at) => [`id ${at}`, `name ${at}`]);
    await db.executeMany("INSERT INTO item VALUES (?, ?)", lists);
    const seen: string[] = [];
    const told = await db.sync({
      onProgress: ({ stage, done, total }) => seen.push(`${stage} ${done} of ${total}`),
    });
    return [seen, told];
  });
  assert.equal(report.inSync, true);
  assert.ok(stages.includes("sent 15000 of 15000") || report.sentCount === 0, stages.join());
  const aborted = await one.evaluate(async () => {
    await db.sql`UPDATE item SET name = ${"again"}`;
    const cancel = new AbortController();
    const syncing = db.sync({ signal: cancel.signal });
    cancel.abort();
    return syncing.then(
      () => "done",
      (error: { code: string }) => error.code,
    );
  });
  assert.equal(aborted, "cancelled");
  const two = await signedIn(login, "two");
  await until(two, async () => {
    const [row] = await db.sql`SELECT count(*) AS n FROM item WHERE name = 'again'`;
    return row?.["n"] === 15_000;
  });
});
