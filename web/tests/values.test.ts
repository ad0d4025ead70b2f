/**
 * Tests that every value that SQLite can hold arrives unchanged in another browser, with and
 * without end-to-end encryption: the values of the native test
 * (`crates/replica/tests/it/values.rs`).
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { PASSWORD, bed } from "./harness.js";
import { site } from "./client/site.js";

/** The values, relative to the repository's root, where `cargo xtask browser` runs the tests. */
const VECTORS = "vectors/values.json";

interface ValueVectors {
  readonly types: readonly string[];
  /** SQL expressions, one per value. */
  readonly values: readonly string[];
}

const here = bed();
const there = site(here);

for (const form of ["plaintext", "e2ee"] as const) {
  test(`every value arrives as it is, ${form}`, async () => {
    const { types, values } = JSON.parse(await readFile(VECTORS, "utf8")) as ValueVectors;
    const columns = types.map((type, place) => `c${place} ${type}`);
    const schema = `CREATE TABLE cells (id INTEGER PRIMARY KEY, ${columns.join(", ")})`;
    const login = await here.server.account(`values-${form}`);
    const one = await open(login, schema, form === "plaintext");
    const two = await open(login, schema, form === "plaintext");
    if (form === "e2ee") {
      const words = await one.evaluate(() => db.createRecoveryPhrase());
      await two.evaluate((given) => db.enterRecoveryPhrase(given), words);
    }
    for (const value of values) {
      const all = types.map(() => value).join(", ");
      await one.evaluate((sql) => db.query(sql), `INSERT INTO cells VALUES (NULL, ${all})`);
    }
    for (const page of [one, two]) {
      const report = await page.evaluate(() => db.sync());
      assert.ok(report.inSync);
      const { newRejectedCount, rejectedCount, setAsideCount, hiddenRowsCount } = report;
      const counts = [newRejectedCount, rejectedCount, setAsideCount, hiddenRowsCount];
      assert.deepEqual([counts, report.missingTables], [[0, 0, 0, 0], []]);
    }
    const sent = await contents(one, types.length);
    assert.equal(sent.length, values.length);
    assert.deepEqual(await contents(two, types.length), sent);
  });
}

async function open(login: string, schema: string, allowPlaintext: boolean): Promise<Page> {
  const options = { schema, track: ["cells"], autoSync: false };
  const page = await there.openDatabase(await here.device(), options);
  const given = { login, password: PASSWORD, deviceName: "page", allowPlaintext };
  await page.evaluate((credentials) => db.signIn(credentials), given);
  return page;
}

/** Returns the table's content, with storage classes and bytes; long values by length and ends. */
async function contents(page: Page, columnsCount: number): Promise<readonly unknown[]> {
  const columns = Array.from({ length: columnsCount }, (_, place) => {
    const bytes = `hex(CAST(c${place} AS BLOB))`;
    const ends = `length(${bytes}) || substr(${bytes}, 1, 200) || substr(${bytes}, -20)`;
    return `typeof(c${place}) || coalesce(${ends}, '') AS c${place}`;
  });
  const sql = `SELECT ${columns.join(", ")} FROM cells ORDER BY id`;
  return page.evaluate(async (text) => (await db.query(text)).rows, sql);
}
