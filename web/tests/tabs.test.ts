/** Tests many tabs on one database: the leader may end at any moment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Page } from "playwright-core";
import { bed, type BrowserDevice } from "./harness.js";
import { SCHEMA, site, until } from "./client/site.js";

const TABS = 10;
/** The time that a tab has the file before it ends. */
const REIGN_MS = 700;

const here = bed();
const there = site(here);

declare global {
  /** The state of a tab that writes. */
  var writer: {
    readonly acknowledged: string[];
    readonly failed: string[];
    /** The longest time between two answers. */
    gapMs: number;
    isOver: boolean;
    end?: Promise<void>;
  };
}

/** Writes one row after the other, and records which were acknowledged. */
function write(tab: number): void {
  const mine: typeof writer = { acknowledged: [], failed: [], gapMs: 0, isOver: false };
  globalThis.writer = mine;
  const run = async (): Promise<void> => {
    let lastMs = performance.now();
    for (let at = 0; !mine.isOver; at += 1) {
      const id = `${tab}-${at}`;
      try {
        await db.sql`INSERT INTO item VALUES (${id}, ${"x"})`;
        mine.acknowledged.push(id);
      } catch (thrown) {
        mine.failed.push(String(thrown));
      }
      mine.gapMs = Math.max(mine.gapMs, performance.now() - lastMs);
      lastMs = performance.now();
    }
  };
  mine.end = run();
}

async function openTabs(device: BrowserDevice, count: number): Promise<Page[]> {
  const pages: Page[] = [];
  for (let tab = 0; tab < count; tab += 1) {
    pages.push(await there.openDatabase(device));
  }
  return pages;
}

/** Returns the tab whose worker has the file. */
async function leader(pages: readonly Page[]): Promise<Page> {
  for (;;) {
    for (const page of pages) {
      if (await page.evaluate(() => db.status.value.isLeader)) {
        return page;
      }
    }
  }
}

type EndTab = (page: Page, device: BrowserDevice) => Promise<void>;

/** The ways in which a tab, or its worker, may end. */
const ENDS: readonly (readonly [string, EndTab, boolean])[] = [
  ["its process crashes", crash, true],
  ["it is closed", (page) => page.close(), true],
  ["its worker ends", endWorker, false],
  ["its process crashes again", crash, true],
  ["it is loaded anew", (page) => page.goto("about:blank").then(() => undefined), true],
];

async function crash(page: Page, device: BrowserDevice): Promise<void> {
  const cdp = await device.context.newCDPSession(page);
  const crashed = page.waitForEvent("crash");
  // After the crash no process is left to answer.
  cdp.send("Page.crash").catch(() => undefined);
  await crashed;
}

async function endWorker(page: Page): Promise<void> {
  const [worker] = page.workers();
  assert.ok(worker !== undefined);
  const closed = worker.waitForEvent("close");
  await worker.evaluate(() => self.close());
  await closed;
}

test("leaders of ten tabs go one after the other, and nothing acknowledged is lost", async (t) => {
  const device = await here.device();
  const pages = await openTabs(device, TABS);
  await Promise.all(pages.map((page, tab) => page.evaluate(write, tab)));
  const acknowledged: string[] = [];
  for (const [name, end, isTabGone] of ENDS) {
    await setTimeout(REIGN_MS);
    const page = await leader(pages);
    acknowledged.push(...(await page.evaluate(() => writer.acknowledged)));
    if (isTabGone) {
      pages.splice(pages.indexOf(page), 1);
    }
    const counts = await Promise.all(pages.map((one) => one.evaluate(restartGap)));
    await end(page, device);
    await Promise.all(pages.map((one, at) => untilMore(one, counts[at] ?? 0)));
    const gaps = await Promise.all(pages.map((one) => one.evaluate(() => writer.gapMs)));
    t.diagnostic(`${name}; the others go on after ${Math.max(...gaps).toFixed()} ms`);
  }
  for (const page of pages) {
    const failed = await page.evaluate(async () => {
      writer.isOver = true;
      await writer.end;
      return writer.failed;
    });
    assert.deepEqual(failed, []);
    acknowledged.push(...(await page.evaluate(() => writer.acknowledged)));
  }
  const [page] = pages;
  assert.ok(page !== undefined);
  const there_ = new Set(
    await page.evaluate(async () => (await db.sql`SELECT id FROM item`).map(({ id }) => id)),
  );
  const lost = acknowledged.filter((id) => !there_.has(id));
  assert.deepEqual(lost, []);
  assert.ok(acknowledged.length > TABS, `${acknowledged.length} rows`);
  const integrity = await page.evaluate(() => db.sql`PRAGMA integrity_check`);
  assert.deepEqual(integrity, [{ integrity_check: "ok" }]);
});

function restartGap(): number {
  writer.gapMs = 0;
  return writer.acknowledged.length;
}

async function untilMore(page: Page, count: number): Promise<void> {
  await page.waitForFunction((before) => writer.acknowledged.length > before + 1, count, {
    polling: 20,
  });
}

test("a live query in one tab is told what another tab wrote", async () => {
  const [one, two] = await openTabs(await here.device(), 2);
  assert.ok(one !== undefined && two !== undefined);
  const told = two.evaluate(
    () =>
      new Promise<unknown>((resolve) => {
        db.live`SELECT name FROM item`((rows) => (rows.length > 0 ? resolve(rows) : undefined));
      }),
  );
  await one.evaluate(() => db.sql`INSERT INTO item VALUES (${"1"}, ${"by one"})`);
  assert.deepEqual(await told, [{ name: "by one" }]);
});

test("a tab that is put to sleep gives the file free, and goes on when it wakes", async () => {
  const device = await here.device();
  const pages = await openTabs(device, 2);
  const first = await leader(pages);
  const second = pages.find((page) => page !== first);
  assert.ok(second !== undefined);
  await first.evaluate(() => db.sql`INSERT INTO item VALUES (${"1"}, ${"by the first"})`);
  // Headless Chromium never freezes a tab, so the test dispatches the event itself.
  await first.evaluate(() => document.dispatchEvent(new Event("freeze")));
  await until(second, () => db.status.value.isLeader);
  await second.evaluate(() => db.sql`INSERT INTO item VALUES (${"2"}, ${"by the second"})`);
  await first.evaluate(() => document.dispatchEvent(new Event("resume")));
  await until(first, () => !db.status.value.isLeader);
  const rows = await first.evaluate(async () => {
    await db.sql`INSERT INTO item VALUES (${"3"}, ${"by the first, awake"})`;
    return (await db.sql`SELECT 1 FROM item`).length;
  });
  assert.equal(rows, 3);
  await second.close();
  await until(first, () => db.status.value.isLeader);
  assert.equal((await first.evaluate(() => db.sql`SELECT 1 FROM item`)).length, 3);
});

test("a transaction goes with the leader, and can be tried again", async () => {
  const device = await here.device();
  const pages = await openTabs(device, 2);
  const first = await leader(pages);
  const second = pages.find((page) => page !== first);
  assert.ok(second !== undefined);
  await second.evaluate(() => {
    const insert = async (): Promise<string> =>
      db
        .transaction(async (tx) => {
          await tx.sql`INSERT INTO item VALUES (${"1"}, ${"x"})`;
          await new Promise<void>((resolve) => addEventListener("go", () => resolve()));
          await tx.sql`INSERT INTO item VALUES (${"2"}, ${"x"})`;
        })
        .then(
          () => "done",
          (error: { code: string }) => error.code,
        );
    Object.assign(globalThis, { insert, ended: insert() });
  });
  await crash(first, device);
  await until(second, () => db.status.value.isLeader);
  const codes = await second.evaluate(async () => {
    const here_ = globalThis as unknown as {
      ended: Promise<string>;
      insert: () => Promise<string>;
    };
    dispatchEvent(new Event("go"));
    const lost = await here_.ended;
    const again = here_.insert();
    const go = setInterval(() => dispatchEvent(new Event("go")), 10);
    const done = await again;
    clearInterval(go);
    return [lost, done, (await db.sql`SELECT 1 FROM item`).length];
  });
  assert.deepEqual(codes, ["leader_lost", "done", 2]);
});

test("after a newer page migrated, an older one works until it has to open the file", async () => {
  const device = await here.device();
  const old = await there.openDatabase(device);
  await old.evaluate(() => db.sql`INSERT INTO item VALUES (${"1"}, ${"by the old one"})`);
  const schema = [SCHEMA, "ALTER TABLE item ADD COLUMN done INTEGER NOT NULL DEFAULT 0"];
  const newer = await there.openDatabase(device, { schema });
  await newer.evaluate(() => db.sql`UPDATE item SET done = 1`);
  const insert = (page: Page, id: string): Promise<string> =>
    page.evaluate(
      (id) =>
        db.sql`INSERT INTO item (id) VALUES (${id})`.then(
          () => "done",
          (error: { code: string }) => error.code,
        ),
      id,
    );
  // The old tab still has the file: what its SQL can do, it may do.
  assert.ok(await old.evaluate(() => db.status.value.isLeader));
  assert.equal(await insert(old, "2"), "done");
  // Then it loses the file, and has to prepare it again.
  await old.evaluate(() => document.dispatchEvent(new Event("freeze")));
  await until(newer, () => db.status.value.isLeader);
  await old.evaluate(() => document.dispatchEvent(new Event("resume")));
  await until(old, () => db.status.value.sync.phase === "failed");
  const failure = await old.evaluate(() => {
    const { sync } = db.status.value;
    if (sync.phase !== "failed") throw new Error(sync.phase);
    const { code, message } = sync.error;
    return { code, message };
  });
  assert.equal(failure.code, "schema_too_new");
  assert.match(failure.message, /migration 2, but this page has only 1: reload the page/);
  assert.equal(await insert(old, "3"), "schema_too_new");
  await assert.rejects(there.openDatabase(device), /schema_too_new|reload the page/);
  const rows = await newer.evaluate(() => db.sql`SELECT id, done FROM item ORDER BY id`);
  assert.deepEqual(rows, [{ id: "1", done: 1 }, { id: "2", done: 0 }]);
});
