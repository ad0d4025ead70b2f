/** Tests tabs, leader and takeover, on a real SQLite file and in a simulated browser. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { WarrenDatabase, OpenOptions } from "../../client/src/api.js";
import { open } from "../../client/src/tab/database.js";
import { FakeWorker, browser, workers } from "./browser.js";
import { engine, replica, type Script } from "./sqlite.js";

const SCHEMA = "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)";

/**
 * The name of the test's database, unique so that leftovers of another test's killed tab do not
 * receive its messages.
 */
let name: string;
let folder: string;
let file: string;
let script: Script;
let page: (hasLocks?: boolean) => symbol;
let count = 0;
let opened: { db: WarrenDatabase; page: symbol; worker: FakeWorker }[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "warren-client-"));
  file = join(folder, "db");
  name = `plan-${(count += 1)}`;
  script = {};
  opened = [];
  page = browser(() => engine(file, script));
});

afterEach(async () => {
  await Promise.all(opened.map(({ db }) => db.close()));
  rmSync(folder, { recursive: true });
});

async function tab(options: Partial<OpenOptions> = {}, hasLocks = true): Promise<WarrenDatabase> {
  const agent = page(hasLocks);
  const db = await open({ name, schema: SCHEMA, ...options });
  const worker = workers.at(-1);
  assert.ok(worker !== undefined);
  opened.push({ db, page: agent, worker });
  return db;
}

/** Ends a tab: no part of it runs any more. */
function kill(db: WarrenDatabase): void {
  const at = opened.findIndex((one) => one.db === db);
  const [gone] = opened.splice(at, 1);
  assert.ok(gone !== undefined);
  FakeWorker.locks.kill(gone.page);
  gone.worker.terminate();
  // Closed so that its channels do not keep the process alive; no other tab receives this.
  void db.close();
}

/** Waits until `holds` returns true, checked after each change of the status. */
function until(db: WarrenDatabase, holds: (db: WarrenDatabase) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop = db.status.subscribe(() => {
      if (holds(db)) {
        queueMicrotask(() => stop());
        resolve();
      }
    });
  });
}

test("statements, rows, and what is refused", async () => {
  const db = await tab();
  await db.sql`INSERT INTO item (name) VALUES (${"a"}), (${null})`;
  assert.deepEqual(await db.sql`SELECT * FROM item`, [
    { id: 1, name: "a" },
    { id: 2, name: null },
  ]);
  const { changes } = await db.query("UPDATE item SET name = 'b'");
  assert.equal(changes, 2);
  assert.equal(await db.executeMany("INSERT INTO item (name) VALUES (?)", [["c"], ["d"]]), 2);
  await assert.rejects(db.sql`SELECT * FROM absent`, /no such table/);
  await assert.rejects(db.sql`BEGIN`, { code: "transaction_required" });
  const nothing = undefined as unknown as null;
  await assert.rejects(db.sql`SELECT ${nothing}`, { code: "invalid_argument" });
  await assert.rejects(db.query("DELETE FROM item; COMMIT"), { code: "transaction_required" });
  await db.sql`VACUUM`;
});

test("what fails leaves nothing, and the database usable", async () => {
  const db = await tab();
  await assert.rejects(db.sql`INSERT INTO item (id) VALUES (1), (2), (1)`, /UNIQUE/);
  await assert.rejects(db.executeMany("INSERT INTO item (id) VALUES (?)", [[1], [1]]), /UNIQUE/);
  script.beforeRun = (sql) => {
    if (sql === "COMMIT") {
      throw Object.assign(new Error("database or disk is full"), { code: "disk_full" });
    }
  };
  await assert.rejects(db.sql`INSERT INTO item (id) VALUES (1)`, { code: "disk_full" });
  const full = db.transaction((tx) => tx.sql`INSERT INTO item (id) VALUES (1)`);
  await assert.rejects(full, { code: "disk_full" });
  delete script.beforeRun;
  assert.deepEqual(await db.sql`SELECT * FROM item`, []);
  await db.sql`INSERT INTO item (id) VALUES (1)`;
});

test("tabs share the file, and a change in one is told in the other", async () => {
  const [a, b] = [await tab(), await tab()];
  assert.equal(a.status.value.isLeader, true);
  assert.equal(b.status.value.isLeader, false);
  const seen = new Promise<void>((resolve) => {
    b.live`SELECT name FROM item`((rows) => {
      if (rows.length === 1) {
        resolve();
      }
    });
  });
  await a.sql`INSERT INTO item (name) VALUES (${"a"})`;
  await seen;
  await b.sql`DELETE FROM item`;
  assert.deepEqual(await a.sql`SELECT * FROM item`, []);
});

test("a transaction is all or nothing, and keeps the others waiting", async () => {
  const [a, b] = [await tab(), await tab()];
  const order: string[] = [];
  const inB = b.transaction(async (tx) => {
    await tx.sql`INSERT INTO item (id, name) VALUES (1, ${"b"})`;
    order.push("b wrote");
    await tx.sql`UPDATE item SET name = ${"bb"}`;
    await assert.rejects(tx.sql`COMMIT`, { code: "transaction_required" });
    order.push("b ends");
  });
  while (order.length === 0) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  const inA = a.sql<{ name: string }>`SELECT name FROM item`.then((rows) => {
    order.push(`a read ${rows[0]?.name}`);
  });
  await Promise.all([inA, inB]);
  assert.deepEqual(order, ["b wrote", "b ends", "a read bb"]);

  const failed = b.transaction(async (tx) => {
    await tx.sql`DELETE FROM item`;
    throw new Error("rather not");
  });
  await assert.rejects(failed, /rather not/);
  assert.equal((await a.sql`SELECT * FROM item`).length, 1);
});

test("another tab takes over from a killed leader, and nothing is lost or done twice", async () => {
  const tabs = [await tab(), await tab(), await tab()];
  const acknowledged = new Set<number>();
  const writing = tabs.slice(1).flatMap((db, at) =>
    Array.from({ length: 40 }, async (_, i) => {
      const id = at * 1_000 + i;
      await db.sql`INSERT INTO item (id, name) VALUES (${id}, ${"x"})`;
      acknowledged.add(id);
    }),
  );
  // Killed after a write was committed, and before it was answered.
  let commits = 0;
  await new Promise<void>((resolve) => {
    script.beforeRun = (sql) => {
      commits += sql === "COMMIT" ? 1 : 0;
      if (commits === 20 && sql !== "COMMIT") {
        delete script.beforeRun;
        kill(tabs[0] as WarrenDatabase);
        resolve();
      }
    };
  });
  await Promise.all(writing);
  const [row] = await (tabs[2] as WarrenDatabase).sql<{
    n: number;
  }>`SELECT count(*) AS n FROM item`;
  assert.equal(row?.n, 80);
  assert.equal(acknowledged.size, 80);
  assert.equal(script.opened, 2);
  assert.ok(tabs.slice(1).some((db) => db.status.value.isLeader));
});

test("a write that was done and not answered is not done again, its rows are told", async () => {
  const [a, b] = [await tab(), await tab()];
  script.beforeRun = (sql) => {
    if (sql === "COMMIT") {
      delete script.beforeRun;
      // The commit is the last action of the killed worker.
      queueMicrotask(() => kill(a));
    }
  };
  const rows = await b.sql`INSERT INTO item (name) VALUES (${"once"}) RETURNING id, name`;
  assert.deepEqual(rows, [{ id: 1, name: "once" }]);
  assert.equal((await b.sql`SELECT * FROM item`).length, 1);
});

test("a transaction whose leader is killed is retried by whoever began it", async () => {
  const [a, b] = [await tab(), await tab()];
  const lost = b.transaction(async (tx) => {
    await tx.sql`INSERT INTO item (id) VALUES (1)`;
    kill(a);
    await tx.sql`INSERT INTO item (id) VALUES (2)`;
  });
  await assert.rejects(lost, { code: "leader_lost" });
  assert.deepEqual(await b.sql`SELECT * FROM item`, []);
});

test("a commit whose answer was lost counts", async () => {
  const [a, b] = [await tab(), await tab()];
  await b.transaction(async (tx) => {
    await tx.sql`INSERT INTO item (id) VALUES (1)`;
    script.beforeRun = (sql) => {
      if (sql === "COMMIT") {
        delete script.beforeRun;
        queueMicrotask(() => kill(a));
      }
    };
  });
  assert.equal((await b.sql`SELECT * FROM item`).length, 1);
});

test("the transaction of a tab that is gone is rolled back", async () => {
  const [a, b] = [await tab(), await tab()];
  const begun = new Promise<void>((resolve) => {
    const never = b.transaction(async (tx) => {
      await tx.sql`INSERT INTO item (id) VALUES (1)`;
      resolve();
      await new Promise(() => undefined);
    });
    never.catch(() => undefined);
  });
  await begun;
  kill(b);
  assert.deepEqual(await a.sql`SELECT * FROM item`, []);
});

test("a worker that crashes is replaced, and what it was asked is answered", async () => {
  const db = await tab();
  await db.sql`INSERT INTO item (id) VALUES (1)`;
  workers.at(-1)?.terminate();
  await db.sql`INSERT INTO item (id) VALUES (2)`;
  assert.equal((await db.sql`SELECT * FROM item`).length, 2);
  assert.equal(workers.length, 2);
});

test("a trap of the wasm module is a crash of the worker", async () => {
  const db = await tab();
  script.beforeRun = (sql) => {
    if (sql.startsWith("INSERT INTO item")) {
      delete script.beforeRun;
      throw new WebAssembly.RuntimeError("unreachable");
    }
  };
  await db.sql`INSERT INTO item (id) VALUES (1)`;
  assert.equal((await db.sql`SELECT * FROM item`).length, 1);
});

test("a call that every leader dies of is rejected in the end", async () => {
  const db = await tab();
  script.beforeRun = (sql) => {
    if (sql.startsWith("INSERT INTO item")) {
      throw new WebAssembly.RuntimeError("unreachable");
    }
  };
  await assert.rejects(db.sql`INSERT INTO item (id) VALUES (1)`, { code: "leader_lost" });
  delete script.beforeRun;
  assert.deepEqual(await db.sql`SELECT * FROM item`, []);
});

test("a file that is still busy is tried again, one that is none is not", async () => {
  const busy = (): Error => Object.assign(new Error("busy"), { code: "busy" });
  script.refusals = [busy(), busy(), busy()];
  const db = await tab();
  assert.equal(script.opened, 4);
  await db.close();
  opened = [];
  script.refusals = [Object.assign(new Error("file is not a database"), { code: "wrong_key" })];
  await assert.rejects(tab(), { code: "wrong_key" });
});

test("without OPFS, and without locks, the database is in memory, with a warning", async () => {
  script.refusals = [Object.assign(new Error("no"), { code: "storage_unavailable" })];
  const db = await tab();
  assert.equal(db.status.value.storage, "memory");
  assert.match(db.status.value.warning ?? "", /private window/);
  const alone = await tab({}, false);
  await alone.sql`INSERT INTO item (id) VALUES (1)`;
  assert.match(alone.status.value.warning ?? "", /for this tab only/);
  assert.deepEqual(await db.sql`SELECT * FROM item`, []);
});

test("migrations run once, and an older page is refused", async () => {
  const first = await tab();
  await first.sql`INSERT INTO item (id) VALUES (1)`;
  const later = "ALTER TABLE item ADD COLUMN done INTEGER; SELECT 1";
  const second = await tab({ schema: [SCHEMA, later] });
  assert.deepEqual(await second.sql`SELECT * FROM item`, [{ id: 1, name: null, done: null }]);
  await assert.rejects(tab(), { code: "schema_too_new" });
  const broken = [SCHEMA, later, "CREATE TABLE a (b); CREATE TABLE a (b)"];
  await assert.rejects(tab({ schema: broken }), /already exists/);
  assert.deepEqual(await second.sql`PRAGMA user_version`, [{ user_version: 2 }]);
});

test("a migration that was edited is refused, whatever its layout", async () => {
  const before = "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT); -- as it was";
  const first = await tab({ schema: before });
  const laidOut = "CREATE  TABLE item (id INTEGER PRIMARY KEY,\n  name TEXT);";
  await tab({ schema: laidOut });
  const edited = "CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT);";
  const message =
    /migration 1 was edited .* append a new migration.* “name TEXT\);”, .* “title TEXT/;
  await assert.rejects(tab({ schema: edited }), { code: "schema_changed", message });
  const second = [before, "ALTER TABLE item ADD COLUMN done INTEGER"];
  await tab({ schema: second });
  await assert.rejects(tab({ schema: [before, "SELECT 1"] }), { code: "schema_changed" });
  // A file from before SQL texts were recorded accepts the present texts.
  await first.sql`DROP TABLE warren_migration`;
  await tab({ schema: second });
  await assert.rejects(tab({ schema: [edited, "SELECT 1"] }), { code: "schema_changed" });
});

test("after close every call is refused, and the file is free", async () => {
  const db = await tab();
  await db.sql`INSERT INTO item (id) VALUES (1)`;
  await db.close();
  opened = [];
  await assert.rejects(db.sql`SELECT 1`, { code: "closed" });
  const again = await tab();
  assert.equal((await again.sql`SELECT * FROM item`).length, 1);
});

test("a leader that closes leaves the file to another tab", async () => {
  const [a, b] = [await tab(), await tab()];
  const waiting = b.transaction(async (tx) => {
    await tx.sql`INSERT INTO item (id) VALUES (1)`;
    await a.close();
    await tx.sql`INSERT INTO item (id) VALUES (2)`;
  });
  await assert.rejects(waiting, { code: /leader_lost|transaction_ended/ });
  await until(b, () => b.status.value.isLeader);
  assert.deepEqual(await b.sql`SELECT * FROM item`, []);
  opened = opened.filter(({ db }) => db !== a);
});

test("notes of calls go when their answers have come", async () => {
  const [, b] = [await tab(), await tab()];
  for (let i = 0; i < 5; i += 1) {
    await b.sql`INSERT INTO item (name) VALUES (${"x"})`;
  }
  const looking = replica(file);
  const { kinds } = looking.run("SELECT number FROM warren_idempotency_key", []);
  assert.equal(kinds.length, 1);
  looking.close();
});

test("another key: the other tabs follow, and whoever gives the old one is refused", async () => {
  const [a, b] = [await tab(), await tab()];
  await a.sql`INSERT INTO item (id) VALUES (1)`;
  await assert.rejects(a.rekey({ from: "not it", to: "new" }), { code: "wrong_key" });
  await b.rekey({ from: null, to: "new" });
  await until(b, () => b.status.value.encrypted);
  await assert.rejects(tab({ key: "not it" }), { code: "wrong_key" });
  await assert.rejects(tab(), { code: "wrong_key" });
  kill(a);
  await until(b, () => b.status.value.isLeader);
  assert.equal((await b.sql`SELECT * FROM item`).length, 1);
  await b.rekey({ from: "new", to: null });
  const c = await tab();
  await until(c, () => !c.status.value.encrypted);
  await assert.rejects(c.rekey({ from: null, to: "" }), { code: "invalid_argument" });
});

test("a database that is deleted is closed in all tabs", async () => {
  const [a, b] = [await tab(), await tab()];
  await until(b, () => b.status.value.storage === "opfs");
  await a.delete();
  opened = [];
  await until(b, ({ status }) => status.value.sync.phase === "failed");
  await assert.rejects(b.sql`SELECT 1`, { code: "deleted" });
  await assert.rejects(a.sql`SELECT 1`, { code: "closed" });
  // No worker is left that waits for the file.
  await (
    await tab()
  ).sql`SELECT 1`;
});
