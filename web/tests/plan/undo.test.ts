/** Tests undo and redo: the stack alone, and every step against a real SQLite. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WarrenDatabase, SqlValue } from "@warren/client";
import sqlite3InitModule from "@sqlite.org/sqlite-wasm";
import {
  addItems,
  checkItem,
  editItem,
  insertItems,
  moveItem,
  removeDone,
  removeItem,
  reorderItem,
} from "../../plan/src/data/items.js";
import {
  addList,
  editList,
  insertLists,
  removeList,
  reorderList,
} from "../../plan/src/data/lists.js";
import { dayOf } from "../../plan/src/data/dates.js";
import { readFile } from "../../plan/src/data/import/read.js";
import { understand, type ImportedItem } from "../../plan/src/data/import/understand.js";
import { runStatements } from "../../plan/src/data/run-statements.js";
import { SCHEMA, type TodoItem, type TodoList } from "../../plan/src/data/schema.js";
import { exportCsv, importItems } from "../../plan/src/data/csv-transfer.js";
import { createUndo, type BatchStatement, type UndoableStep } from "../../plan/src/data/undo.js";

const sqlite3 = await sqlite3InitModule();

/** Opens a database with the parts that the steps use, on SQLite itself. */
function openDatabase(): WarrenDatabase {
  const file = new sqlite3.oo1.DB(":memory:");
  for (const sql of SCHEMA) file.exec(sql);
  const run = (sql: string, parameters: readonly SqlValue[]): unknown[] =>
    file.exec({
      sql,
      ...(parameters.length > 0 ? { bind: [...parameters] } : {}),
      rowMode: "object",
      returnValue: "resultRows",
    });
  const queries = {
    query: async (sql: string, parameters: readonly SqlValue[] = []) => ({
      rows: run(sql, parameters),
      changes: 0,
    }),
    sql: async (text: TemplateStringsArray, ...values: SqlValue[]) => run(text.join("?"), values),
    executeMany: async (sql: string, rows: readonly (readonly SqlValue[])[]) => {
      for (const row of rows) run(sql, row);
      return rows.length;
    },
  };
  const transaction = async (work: (tx: typeof queries) => Promise<unknown>): Promise<unknown> => {
    file.exec("BEGIN");
    try {
      const result = await work(queries);
      file.exec("COMMIT");
      return result;
    } catch (error) {
      file.exec("ROLLBACK");
      throw error;
    }
  };
  // Only a replica has a history.
  const recordHistory = (): Promise<void> => Promise.resolve();
  return { ...queries, transaction, recordHistory } as unknown as WarrenDatabase;
}

const list = (id: string, position: string): TodoList => ({
  id,
  name: `List ${id}`,
  colour: "blue",
  position,
  created_ms: 1,
});

const item = (id: string, position: string, rest: Partial<TodoItem> = {}): TodoItem => ({
  id,
  list_id: "l1",
  title: `Item ${id}`,
  note: "",
  due: null,
  done_ms: null,
  position,
  created_ms: 1,
  ...rest,
});

async function filledDatabase(): Promise<WarrenDatabase> {
  const db = openDatabase();
  await runStatements(db, [
    insertLists([list("l1", "a0"), list("l2", "a1"), list("l3", "a1")]),
    insertItems([
      item("i1", "a0", { note: "a note", due: "2027-01-01" }),
      item("i2", "a1"),
      item("i3", "a1"),
      item("i4", "a2"),
      item("i5", "a3", { done_ms: 5 }),
    ]),
  ]);
  return db;
}

async function contents(db: WarrenDatabase): Promise<unknown> {
  return {
    lists: await db.sql`SELECT * FROM list ORDER BY position, id`,
    items: await db.sql`SELECT * FROM item ORDER BY list_id, position, id`,
  };
}

async function titles(db: WarrenDatabase): Promise<unknown[]> {
  const rows = await db.sql`SELECT id FROM item
    WHERE list_id = 'l1' AND done_ms IS NULL ORDER BY position, id`;
  return rows.map((row) => row["id"]);
}

const STEPS: Readonly<
  Record<string, (db: WarrenDatabase) => UndoableStep | Promise<UndoableStep | undefined>>
> = {
  "add an item": (db) =>
    addItems(db, {
      items: [{ id: "new", title: "New" }],
      listId: "l1",
      due: null,
      createdMs: 9,
    }),
  "edit an item": () =>
    editItem(item("i1", "a0", { note: "a note", due: "2027-01-01" }), { title: "X", due: null }),
  "check an item": () => checkItem(item("i2", "a1"), 7),
  "reopen an item": () => checkItem(item("i5", "a3", { done_ms: 5 }), null),
  "remove an item": () => removeItem(item("i1", "a0", { note: "a note", due: "2027-01-01" })),
  "remove what is done": (db) => removeDone(db, "l1"),
  "reorder an item": (db) => reorderItem(db, item("i4", "a2"), undefined),
  "reorder between ties": (db) => reorderItem(db, item("i4", "a2"), "i2"),
  "move an item": (db) => moveItem(db, item("i1", "a0"), { id: "l2", name: "List l2" }),
  "add a list": (db) => addList(db, { id: "l9", name: "Nine", colour: "red", createdMs: 9 }),
  "edit a list": () => editList(list("l1", "a0"), "Other", "pink"),
  "remove a list": (db) => removeList(db, list("l1", "a0")),
  "reorder a list": (db) => reorderList(db, list("l1", "a0"), "l2"),
};

for (const [name, make] of Object.entries(STEPS)) {
  test(`${name}, undo, redo: as before, and as after`, async () => {
    const db = await filledDatabase();
    const undo = createUndo((statements) => runStatements(db, statements));
    const before = await contents(db);
    const step = await make(db);
    assert.ok(step);
    await undo.perform(step);
    const after = await contents(db);
    assert.notDeepEqual(after, before);
    assert.equal(await undo.undo(), step);
    assert.deepEqual(await contents(db), before);
    assert.equal(await undo.redo(), step);
    assert.deepEqual(await contents(db), after);
  });
}

test("an item stands where it was put, also between rows of one position", async () => {
  const db = await filledDatabase();
  const put = async (after: string | undefined): Promise<unknown[]> => {
    const [present] = await db.sql<TodoItem>`SELECT * FROM item WHERE id = 'i4'`;
    assert.ok(present);
    const step = await reorderItem(db, present, after);
    await runStatements(db, step.apply);
    return titles(db);
  };
  assert.deepEqual(await put(undefined), ["i4", "i1", "i2", "i3"]);
  assert.deepEqual(await put("i2"), ["i1", "i2", "i4", "i3"]);
  assert.deepEqual(await put("i3"), ["i1", "i2", "i3", "i4"]);
  assert.deepEqual(await put("i1"), ["i1", "i4", "i2", "i3"]);
});

test("several new items stand first, in their order", async () => {
  const db = await filledDatabase();
  const items = ["n1", "n2", "n3"].map((id) => ({ id, title: id }));
  const step = await addItems(db, { items, listId: "l1", due: null, createdMs: 9 });
  assert.equal(step.label, "Added 3 items");
  await runStatements(db, step.apply);
  assert.deepEqual((await titles(db)).slice(0, 4), ["n1", "n2", "n3", "i1"]);
});

test("an edit's way back leaves alone what another device changed meanwhile", async () => {
  const db = await filledDatabase();
  const undo = createUndo((statements) => runStatements(db, statements));
  await undo.perform(editItem(item("i2", "a1"), { title: "Mine" }));
  await db.sql`UPDATE item SET note = 'theirs' WHERE id = 'i2'`;
  await undo.undo();
  const [row] = await db.sql`SELECT title, note FROM item WHERE id = 'i2'`;
  assert.deepEqual({ ...row }, { title: "Item i2", note: "theirs" });
});

test("steps run in turn; a failed one is not remembered; a new one ends redo", async () => {
  const ran: string[] = [];
  const undo = createUndo(async (statements: readonly BatchStatement[]) => {
    await Promise.resolve();
    const sql = statements[0]?.sql ?? "";
    if (sql === "fails") throw new Error("no");
    ran.push(sql);
  });
  const step = (name: string): UndoableStep => ({
    label: name,
    apply: [{ sql: name, rows: [[]] }],
    revert: [{ sql: `un${name}`, rows: [[]] }],
  });
  const first = undo.perform(step("a"));
  const failed = undo.perform(step("fails"));
  const last = undo.perform(step("b"));
  await first;
  await assert.rejects(failed);
  await last;
  assert.equal((await undo.undo())?.label, "b");
  await undo.perform(step("c"));
  assert.equal(await undo.redo(), undefined);
  assert.equal((await undo.undo())?.label, "c");
  assert.equal((await undo.undo())?.label, "a");
  assert.equal(await undo.undo(), undefined);
  assert.deepEqual(ran, ["a", "b", "unb", "c", "unc", "una"]);
});

function importedItems(count: number): ImportedItem[] {
  return Array.from({ length: count }, (_, index) => ({
    title: `Item ${index}`,
    note: "",
    due: null,
    list: index % 2 ? "List l1" : "New",
    done: false,
    doneOn: undefined,
  }));
}

function importInto(
  db: WarrenDatabase,
  signal: AbortSignal,
  onProgress: (done: number) => void,
): Promise<UndoableStep | undefined> {
  let next = 0;
  return importItems(db, {
    items: importedItems(1200),
    fallbackList: "Fallback",
    nowMs: 100,
    newId: () => `n${String(next++)}`,
    onProgress,
    signal,
  });
}

test("an import goes to lists by their names, keeps the order, and is undone as one", async () => {
  const db = await filledDatabase();
  const undo = createUndo((statements) => runStatements(db, statements));
  const before = await contents(db);
  const told: number[] = [];
  const step = await importInto(db, new AbortController().signal, (done) => told.push(done));
  assert.ok(step);
  undo.remember(step);
  assert.deepEqual(told, [500, 1000, 1200]);
  assert.deepEqual((await titles(db)).slice(0, 4), ["i1", "i2", "i3", "i4"]);
  const rows = await db.sql`SELECT item.title FROM item JOIN list ON list.id = item.list_id
    WHERE list.name = 'New' ORDER BY item.position, item.id`;
  assert.deepEqual(
    rows.map((row) => row["title"]),
    Array.from({ length: 600 }, (_, i) => `Item ${2 * i}`),
  );
  await undo.undo();
  assert.deepEqual(await contents(db), before);
});

test("an import that is cancelled leaves nothing behind", async () => {
  const db = await filledDatabase();
  const before = await contents(db);
  const abort = new AbortController();
  const step = await importInto(db, abort.signal, () => abort.abort());
  assert.equal(step, undefined);
  assert.deepEqual(await contents(db), before);
});

test("what is exported is read back as it was", async () => {
  const db = await filledDatabase();
  await runStatements(db, [
    insertItems([
      item("i6", "a4", { title: 'with "quotes", commas', note: "two\nlines: 3/4/2027" }),
      item("i7", "a5", { done_ms: new Date(2027, 2, 12, 18).getTime() }),
    ]),
  ]);
  const file = readFile(new TextEncoder().encode(await exportCsv(db)));
  const meanings = file.columns.map(({ meaning }) => meaning);
  const { items } = understand(file, { meanings, dayOrder: undefined, locale: "en-US" });
  assert.equal(items.length, 7);
  assert.ok(items.every(({ list: name }) => name === "List l1"));
  assert.deepEqual(
    items.map(({ title, note, due, doneOn }) => [title, note, due, doneOn]).slice(4),
    [
      ['with "quotes", commas', "two\nlines: 3/4/2027", null, undefined],
      ["Item i5", "", null, dayOf(new Date(5))],
      ["Item i7", "", null, "2027-03-12"],
    ],
  );
  assert.deepEqual([items[0]?.note, items[0]?.due], ["a note", "2027-01-01"]);
});
