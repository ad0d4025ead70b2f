/**
 * Tests that the memory use of a tab does not grow with the size of the account. By default, the
 * account is a little larger than the memory that a tab may use; `WARREN_MEMORY=long` makes it 2
 * GB, and a number is its size in MiB.
 */
import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { PASSWORD, bed, type BrowserDevice } from "./harness.js";
import { site } from "./client/site.js";

/** The number of rows, of 1 MiB each. */
const ROWS_COUNT = 250;
const LONG_ROWS_COUNT = 2_000;
const MEMORY_MIB_MAX = 200;
const POLL_MS = 20;
const SCHEMA = "CREATE TABLE photo (id INTEGER PRIMARY KEY, bytes BLOB)";
const SUM = "SELECT count(*) AS count, sum(length(bytes)) AS bytes FROM photo";

const here = bed();
const there = site(here);

test("a first sync takes no more memory of a tab than a few pages", async (t) => {
  const login = await here.server.account("photos");
  const original = await fill(login, rowsCount());
  const device = await here.deviceOnDisk();
  const page = await there.openDatabase(device, {
    schema: SCHEMA,
    track: ["photo"],
    autoSync: false,
  });
  await page.evaluate((credentials) => db.signIn(credentials), { login, password: PASSWORD });
  const renderers = await renderersOf(device);
  const before = await Promise.all(renderers.map((id) => kibOf(id, "VmRSS")));
  const syncing = page.evaluate(() => db.sync());
  const peaks = await peaksUntil(syncing, renderers);
  assert.equal((await syncing).inSync, true);
  // The other processes show nothing, and do not grow.
  const grownMib = Math.max(...peaks.map((peak, at) => peak - (before[at] ?? 0))) / 1024;
  t.diagnostic(`${rowsCount()} MiB took ${grownMib.toFixed()} MiB of memory`);
  assert.ok(grownMib > 1 && grownMib < MEMORY_MIB_MAX, `${grownMib} MiB`);
  const arrived = await page.evaluate(async (sql) => (await db.query(sql)).rows[0], SUM);
  assert.deepEqual(arrived, original);
});

function rowsCount(): number {
  const asked = process.env["WARREN_MEMORY"];
  return asked === "long" ? LONG_ROWS_COUNT : Number(asked ?? ROWS_COUNT);
}

/**
 * Gives an account this many photos, through a native device; returns their count and total size.
 */
async function fill(login: string, count: number): Promise<unknown> {
  const path = join(here.server.folder, "original.db");
  const file = new DatabaseSync(path);
  file.exec(SCHEMA);
  file.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
             INSERT INTO photo SELECT i, randomblob(1048576) FROM n`);
  const sum = { ...file.prepare(SUM).get() };
  file.close();
  await here.server.warren("track", path, "--all");
  await here.server.sync(path, login);
  // Temporary files may themselves be in memory.
  await Promise.all(["", "-shm", "-wal"].map((end) => rm(path + end, { force: true })));
  return sum;
}

/** Lists the processes that run pages and their workers. */
async function renderersOf(device: BrowserDevice): Promise<readonly number[]> {
  const session = await device.context.browser()?.newBrowserCDPSession();
  assert.ok(session !== undefined);
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
}

/** Returns the peak memory of each process until `end`, in KiB. */
async function peaksUntil(end: Promise<unknown>, processes: readonly number[]): Promise<number[]> {
  let peaks = processes.map(() => 0);
  let isOver = false;
  const ended = end.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    // Linux keeps the peak, but some ways of releasing pages reset it.
    const now = await Promise.all(processes.map((id) => kibOf(id, "VmHWM")));
    peaks = peaks.map((peak, at) => Math.max(peak, now[at] ?? 0));
    await setTimeout(POLL_MS);
  }
  await ended;
  return peaks;
}

async function kibOf(process: number, name: "VmRSS" | "VmHWM"): Promise<number> {
  const status = await readFile(`/proc/${process}/status`, "utf8");
  const line = status.split("\n").find((one) => one.startsWith(`${name}:`));
  return Number(line?.match(/\d+/)?.[0]);
}
