/** Tests `@warren/client` in a browser: one tab, its file, and the server. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import type { OpenOptions } from "../client/src/index.js";
import { PASSWORD, bed } from "./harness.js";
import { REACHABLE, SCHEMA, site, until } from "./client/site.js";

const script = { text: REACHABLE };
const here = bed();
const there = site(here, script);

afterEach(() => {
  script.text = REACHABLE;
});

test("every storage class goes in and comes out, also after a reload", async () => {
  const device = await here.device();
  const page = await there.openDatabase(device, {
    schema: "CREATE TABLE v (id INTEGER PRIMARY KEY, value)",
    track: [],
  });
  const read = async (): Promise<unknown> =>
    page.evaluate(async () => {
      const rows = await db.sql`SELECT typeof(value) AS type, value FROM v ORDER BY id`;
      // Results of `evaluate` are JSON, so other values are converted.
      return rows.map(({ type, value }) => [
        type,
        value instanceof Uint8Array ? [...value] : typeof value === "bigint" ? `${value}n` : value,
      ]);
    });
  await page.evaluate(async () => {
    const values = [null, 7, 1.5, 2n ** 60n, 9007199254740993n, "ä𝒳\0z", true];
    const blobs = [Uint8Array.of(0, 255), new Uint8Array()];
    for (const value of [...values, ...blobs]) {
      await db.sql`INSERT INTO v (value) VALUES (${value})`;
    }
  });
  const expected = [
    ["null", null],
    ["integer", 7],
    ["real", 1.5],
    ["integer", `${2n ** 60n}n`],
    ["integer", "9007199254740993n"],
    ["text", "ä𝒳\0z"],
    ["integer", 1],
    ["blob", [0, 255]],
    ["blob", []],
  ];
  assert.deepEqual(await read(), expected);
  await page.reload();
  await until(page, () => "warren" in globalThis);
  await page.evaluate(async () => {
    const schema = "CREATE TABLE v (id INTEGER PRIMARY KEY, value)";
    globalThis.db = await warren.open({ name: "plan", schema });
  });
  assert.deepEqual(await read(), expected);
  const status = await page.evaluate(() => db.status.value);
  assert.deepEqual([status.storage, status.isLeader, status.sync.phase], ["opfs", true, "local"]);
});

test("a text may be run again: PRAGMAs too, and after the schema changed", async () => {
  const page = await there.openDatabase(await here.device(), {
    schema: "CREATE TABLE v (a, b); INSERT INTO v VALUES (1, 2)",
    track: [],
  });
  const found = await page.evaluate(async () => {
    const all = async (sql: string): Promise<unknown> => (await db.query(sql)).rows;
    const sizes = [];
    for (const size of [-100, -200, -100]) {
      await db.query(`PRAGMA cache_size = ${size}`);
      sizes.push(await all("PRAGMA cache_size"));
    }
    const before = await all("SELECT * FROM v");
    await db.query("ALTER TABLE v DROP COLUMN b");
    const insert = await db.query("INSERT INTO v SELECT a + 1 FROM v WHERE a = 1");
    return [sizes, before, await all("SELECT * FROM v"), insert.changes, await all("-- nothing")];
  });
  const sizes = [-100, -200, -100].map((size) => [{ cache_size: size }]);
  assert.deepEqual(found, [sizes, [{ a: 1, b: 2 }], [{ a: 1 }, { a: 2 }], 1, []]);
});

test("what SQLite refuses is told with its code, and leaves nothing", async () => {
  const page = await there.openDatabase(await here.device());
  const codes = await page.evaluate(async () => {
    await db.sql`INSERT INTO item VALUES (${"a"}, ${"first"})`;
    const failing = [
      () => db.sql`INSERT INTO item VALUES (${"b"}, ${null}), (${"a"}, ${null})`,
      () => db.executeMany("INSERT INTO item VALUES (?, ?)", [["c", null], ["a", null]]),
      () => db.sql`SELECT * FROM absent`,
      () => db.sql`SELECT ${2n ** 64n}`,
      () => db.track("absent"),
      () => db.enterRecoveryPhrase("no such words"),
      () => db.devices(),
    ];
    const codes: string[] = [];
    for (const fail of failing) {
      await fail().then(
        () => codes.push("done"),
        (error: { code: string }) => codes.push(error.code),
      );
    }
    return [codes, (await db.sql`SELECT id FROM item`).length];
  });
  const expected = [
    "constraint_violated",
    "constraint_violated",
    "sqlite_error",
    "invalid_argument",
    "untrackable",
    "invalid_recovery_phrase",
    "server_not_configured",
  ];
  assert.deepEqual(codes, [expected, 1]);
});

test("a file goes out to the native program, and a native one comes in", async () => {
  const page = await there.openDatabase(await here.device());
  const file = join(here.server.folder, "exported.db");
  await page.evaluate(() => db.sql`INSERT INTO item VALUES (${"a"}, ${"from the browser"})`);
  await writeFile(file, Uint8Array.from(await exported(page)));
  const inspected = JSON.parse(await here.server.warren("inspect", file, "--json")) as {
    readonly tables: readonly { readonly table: string; readonly rows_count: number }[];
  };
  const counts = inspected.tables.map(({ table, rows_count: count }) => [table, count]);
  assert.deepEqual(counts, [["item", 1]]);

  const native = new DatabaseSync(file);
  native.exec("INSERT INTO item VALUES ('b', 'from the native program')");
  native.close();
  await here.server.warren("doctor", file);
  const bytes = [...(await readFile(file))];
  const names = await page.evaluate(async (given) => {
    await db.import(Uint8Array.from(given));
    return (await db.sql`SELECT name FROM item ORDER BY id`).map(({ name }) => name);
  }, bytes);
  assert.deepEqual(names, ["from the browser", "from the native program"]);

  const after = await page.evaluate(async () => {
    const code = await db.import(new TextEncoder().encode("no database".repeat(1_000))).then(
      () => "done",
      (error: { code: string }) => error.code,
    );
    return [code, (await db.sql`SELECT 1 FROM item`).length];
  });
  assert.deepEqual(after, ["wrong_key", 2]);
});

const SECRET = "nobody may read this";

test("with a key the file has no plain text in it, and nothing else opens it", async () => {
  const device = await here.device();
  const key = "a passphrase";
  const page = await there.openDatabase(device, { key });
  await page.evaluate(async (secret) => {
    const lists = Array.from({ length: 500 }, (_, at) => [`id ${at}`, secret]);
    await db.executeMany("INSERT INTO item VALUES (?, ?)", lists);
  }, SECRET);
  const whole = Buffer.from(await exported(page));
  assert.ok(whole.length > 500 * SECRET.length);
  assert.equal(whole.includes(SECRET), false);
  assert.equal(whole.includes("CREATE TABLE"), false);

  // Files in OPFS can be read only while no worker has them open.
  const files = await page.evaluate(async () => {
    await db.close();
    const found: string[] = [];
    const walk = async (folder: FileSystemDirectoryHandle): Promise<void> => {
      for await (const entry of folder.values()) {
        if (entry instanceof FileSystemFileHandle) {
          found.push(new TextDecoder("latin1").decode(await (await entry.getFile()).arrayBuffer()));
        } else {
          await walk(entry as FileSystemDirectoryHandle);
        }
      }
    };
    await walk(await navigator.storage.getDirectory());
    return found;
  });
  assert.ok(files.some((text) => text.length > 500 * SECRET.length));
  assert.deepEqual(files.filter((text) => text.includes(SECRET)), []);

  const opened = await page.evaluate(async ([right, schema]) => {
    const codes: unknown[] = [];
    for (const given of ["another", undefined, right]) {
      const options = { name: "plan", schema };
      try {
        const again = await warren.open(given === undefined ? options : { ...options, key: given });
        codes.push((await again.sql`SELECT 1 FROM item`).length);
        await again.close();
      } catch (error) {
        codes.push((error as { code: string }).code);
      }
    }
    return codes;
  }, [key, SCHEMA] as const);
  assert.deepEqual(opened, ["wrong_key", "wrong_key", 500]);
});

test("a full disk refuses the write, and nothing but it", async () => {
  const device = await here.device();
  const page = await there.openDatabase(device);
  await page.evaluate(() => db.sql`INSERT INTO item VALUES (${"a"}, ${"there"})`);
  const cdp = await device.context.newCDPSession(page);
  const origin = new URL(there.address).origin;
  await cdp.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1_000_000 });
  const codes = await page.evaluate(async () => {
    const large = "x".repeat(400_000);
    const code = async (work: () => Promise<unknown>): Promise<string> =>
      work().then(
        () => "done",
        (error: { code: string }) => error.code,
      );
    const codes: string[] = [];
    for (let at = 0; at < 20; at += 1) {
      codes.push(await code(() => db.sql`INSERT INTO item VALUES (${`large ${at}`}, ${large})`));
    }
    const inTransaction = db.transaction(async (tx) => {
      await tx.sql`INSERT INTO item VALUES (${"in a transaction"}, ${large})`;
      await tx.sql`INSERT INTO item VALUES (${"in a transaction, too"}, ${large})`;
    });
    codes.push(await code(() => inTransaction));
    return codes;
  });
  assert.equal(codes.at(-1), "disk_full", codes.join());
  assert.deepEqual([...new Set(codes)].sort(), ["disk_full", "done"]);
  await cdp.send("Storage.overrideQuotaForOrigin", { origin });
  const done = codes.slice(0, 20).filter((code) => code === "done").length;
  const rows = await page.evaluate(async () => {
    await db.sql`INSERT INTO item VALUES (${"z"}, ${"after"})`;
    return (await db.sql`SELECT id FROM item ORDER BY id`).map(({ id }) => id);
  });
  assert.equal(rows.length, done + 2);
  assert.equal(rows.includes("in a transaction"), false);
});

test("without files, or without locks, it is in memory and says so", async () => {
  const device = await here.device();
  const page = await there.openDatabase(device, {
    assets: { worker: "/worker-without-files.js" },
  });
  const [storage, warning] = await page.evaluate(async () => {
    await db.sql`INSERT INTO item VALUES (${"a"}, ${"here"})`;
    return [db.status.value.storage, db.status.value.warning];
  });
  assert.equal(storage, "memory");
  assert.match(warning ?? "", /in memory, and is lost when the leader tab closes/);

  const alone = await page.evaluate(async (schema) => {
    Object.defineProperty(navigator, "locks", { value: undefined });
    const other = await warren.open({ name: "plan", schema });
    const rows = await other.sql`SELECT 1 FROM item`;
    return [rows.length, other.status.value.storage, other.status.value.isLeader];
  }, SCHEMA);
  assert.deepEqual(alone, [0, "memory", true]);
});

test("what cannot be loaded is told at once, with its address", async () => {
  const device = await here.device();
  device.expectErrors(/404|Failed to load module script|Content Security Policy/);
  const page = await there.open(device);
  await until(page, () => "warren" in globalThis);
  const told = async (assets: OpenOptions["assets"]): Promise<string> =>
    page.evaluate(
      async ([given, schema]) => {
        const options = { name: "none", schema: schema ?? [], assets: given ?? {} };
        try {
          await warren.open(options);
          return "opened";
        } catch (error) {
          const { code, message } = error as { code: string; message: string };
          return `${code}: ${message}`;
        }
      },
      [assets, SCHEMA] as const,
    );
  const missing = /^engine_unavailable: .* expected at http[^ ]+\/gone\.js: put worker\.js/;
  assert.match(await told({ worker: "/gone.js" }), missing);
  const aPage = /^engine_unavailable: cannot load the wasm at http[^ ]+\/: .*text\/html/;
  assert.match(await told({ wasm: "/" }), aPage);
  const notThere =
    /^engine_unavailable: cannot load the wasm at http[^ ]+\/gone\.wasm: .* answered 404; put/;
  assert.match(await told({ wasm: "/gone.wasm" }), notThere);
  // Another origin: no worker may come from there, and the page's policy forbids its wasm.
  const elsewhere = here.server.address;
  const foreign = /^engine_unavailable: cannot start the worker: .*cannot be accessed/;
  assert.match(await told({ worker: `${elsewhere}/worker.js` }), foreign);
  const refused = /^unreachable: cannot load the wasm at .*: Failed to fetch/;
  assert.match(await told({ wasm: `${elsewhere}/replica_bg.wasm` }), refused);
  assert.equal(await told({ worker: "/worker.js", wasm: "/replica_bg.wasm" }), "opened");
});

test("the example in the guide and the package's README does what it says", async () => {
  const [example, same] = await Promise.all(
    ["docs/guide/browser.md", "web/client/README.md"].map(async (file) => {
      const [, text] = /```ts\n([\s\S]*?)```/.exec(await readFile(file, "utf8")) ?? [];
      return text;
    }),
  );
  assert.ok(example !== undefined);
  assert.equal(same, example);
  const lines = example.split("\n").filter((line) => line.trim() !== "");
  assert.ok(lines.length <= 20, `${lines.length} lines`);
  script.text = stripTypeScriptTypes(example).replace('"@warren/client"', '"./index.js"');
  const login = await here.server.account("reader");
  const pages = [];
  for (const text of ["from one", "from two"]) {
    const page = await there.open(await here.device());
    await page.evaluate(
      async (given) => {
        const path = "/page.js";
        const { add, signIn } = (await import(path)) as {
          add: (text: string) => Promise<unknown>;
          signIn: (login: string, password: string) => Promise<void>;
        };
        await add(given.text);
        await signIn(given.login, given.password);
      },
      { text, login, password: PASSWORD },
    );
    pages.push(page);
  }
  for (const page of pages) {
    await page.getByText("from one").waitFor();
    await page.getByText("from two").waitFor();
    await until(page, () => document.title === "Notes: inSync");
  }
});

function exported(page: Page): Promise<number[]> {
  return page.evaluate(async () => [...(await db.export())]);
}
