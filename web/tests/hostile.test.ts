/**
 * Tests with hostile messages: whatever a device of the account sends, the pages keep working. The
 * cases are those that native devices get, too (`crates/replica/tests/it/hostile.rs`).
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { PASSWORD, bed, type BrowserDevice } from "./harness.js";
import { site } from "./client/site.js";

/** The cases, relative to the repository's root, where `cargo xtask browser` runs the tests. */
const VECTORS = "vectors/hostile.json";
const ROUND_CASES_COUNT = 60;
/**
 * The clock lead of the hostile messages: the most that clocks may be ahead of the server's, with
 * a margin.
 */
const AHEAD_MS = 60_000;

interface HostileVectors {
  readonly schema: string;
  /** Creates a table that is not tracked. */
  readonly secret: string;
  /** Tracked tables, and a query for each that returns one line per row. */
  readonly lines: readonly (readonly [table: string, sql: string])[];
  /**
   * The edits of each of two honest devices after each round; `ROUND` stands for the round's
   * number.
   */
  readonly edits: readonly [readonly string[], readonly string[]];
  /** The lines that the edits produce. */
  readonly edited: readonly string[];
  /** The contents of each case's messages, in base64. */
  readonly cases: readonly (readonly string[])[];
}

const here = bed();
const there = site(here);

test("hostile messages stop no page, and honest edits go on", async () => {
  const vectors = JSON.parse(await readFile(VECTORS, "utf8")) as HostileVectors;
  const login = await here.server.account("hostile");
  const stranger = await register(login);
  const one = await open(await here.device(), login, vectors);
  const two = await open(await here.device(), login, vectors);
  const objects = await schemaObjects(one);
  const [ofOne, ofTwo] = vectors.edits;
  await edit(one, ofOne, 0);
  await sync(one);

  const { cases } = vectors;
  assert.ok(cases.length >= 200);
  for (let round = 1; (round - 1) * ROUND_CASES_COUNT < cases.length; round += 1) {
    const some = cases.slice((round - 1) * ROUND_CASES_COUNT, round * ROUND_CASES_COUNT);
    await push(stranger, some.flat(), round);
    await Promise.all([sync(one), sync(two)]);
    await edit(one, ofOne, round);
    await edit(two, ofTwo, round);
    for (const page of [one, two, one]) {
      await sync(page);
    }
    const device = await here.device();
    const three = await open(device, login, vectors);
    await sync(three);
    const shown = await lines(one, vectors);
    for (const page of [two, three]) {
      assert.deepEqual(await lines(page, vectors), shown, `round ${round}`);
    }
    for (const line of vectors.edited) {
      const edited = line.replace("ROUND", String(round));
      assert.ok(shown.includes(edited), `round ${round}: ${edited} is not in ${shown.join("\n")}`);
    }
    for (const page of [one, two, three]) {
      assert.deepEqual(await schemaObjects(page), objects);
      assert.deepEqual(await page.evaluate(() => db.sql`SELECT text FROM diary`), [
        { text: "secret" },
      ]);
    }
    await device.context.close();
  }
});

/** Registers a device of the account that has no page; returns its token. */
async function register(login: string): Promise<string> {
  const answer = await post("/v1/devices", { login, password: PASSWORD, name: "stranger" });
  return ((await answer.json()) as { readonly token: string }).token;
}

async function push(token: string, contents: readonly string[], round: number): Promise<void> {
  const counter = round.toString(16).toUpperCase().padStart(4, "0");
  const firstMs = Date.now() + AHEAD_MS;
  const messages = contents.map((content, place) => ({
    timestamp: `${new Date(firstMs + place).toISOString()}-${counter}-0000000000000007`,
    content,
  }));
  const answer = await post("/v1/sync/delta", { messages }, { authorization: `Bearer ${token}` });
  const answered = (await answer.json()) as { readonly stored_count: number };
  assert.equal(answered.stored_count, contents.length);
}

async function post(
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const answer = await fetch(here.server.address + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return answer;
}

async function open(device: BrowserDevice, login: string, vectors: HostileVectors): Promise<Page> {
  const page = await there.openDatabase(device, {
    schema: [vectors.schema, vectors.secret],
    track: vectors.lines.map(([table]) => table),
    autoSync: false,
  });
  const given = { login, password: PASSWORD, deviceName: "page", allowPlaintext: true };
  await page.evaluate((credentials) => db.signIn(credentials), given);
  return page;
}

async function sync(page: Page): Promise<void> {
  const { inSync } = await page.evaluate(() => db.sync());
  assert.equal(inSync, true);
}

async function edit(page: Page, edits: readonly string[], round: number): Promise<void> {
  for (const sql of edits) {
    await page.evaluate((text) => db.query(text), sql.replaceAll("ROUND", String(round)));
  }
}

async function lines(page: Page, vectors: HostileVectors): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for (const [, sql] of vectors.lines) {
    all.push(...(await page.evaluate(async (text) => (await db.query(text)).rows, sql)));
  }
  return all.map((row) => (row as { readonly line: string }).line);
}

/** Lists all objects in the database's schema, except Warren's own. */
function schemaObjects(page: Page): Promise<unknown[]> {
  return page.evaluate(
    () =>
      db.sql`SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'warren%' ORDER BY name`,
  );
}
