/**
 * Imports items into the database, in batches, and exports all items as CSV. Reading a file →
 * `import/`.
 *
 * - Lists are found by their names, and created if missing.
 * - An import is one undo step. An import that is canceled or fails leaves nothing behind.
 */
import type { WarrenDatabase } from "@warren/client";
import { formatCsv } from "./csv.js";
import { dayOf, noonOf } from "./dates.js";
import { OWN_COLUMNS } from "./import/columns.js";
import type { ImportedItem } from "./import/understand.js";
import { deleteItems, insertItems } from "./items.js";
import { COLOURS, deleteLists, insertLists, lastListPosition } from "./lists.js";
import { positionsAfter } from "./fractional-order.js";
import { runStatements } from "./run-statements.js";
import type { TodoItem, TodoList } from "./schema.js";
import type { UndoableStep } from "./undo.js";

export interface ImportOptions {
  readonly items: readonly ImportedItem[];
  /** The name of the list for items that name none; the list is created if missing. */
  readonly fallbackList: string;
  readonly nowMs: number;
  readonly newId: () => string;
  readonly onProgress: (done: number) => void;
  readonly signal: AbortSignal;
}

const PIECE = 500;

/** Imports the items and returns the undo step, which has already run; `undefined` if canceled. */
export async function importItems(
  db: WarrenDatabase,
  options: ImportOptions,
): Promise<UndoableStep | undefined> {
  const plan = await planImport(db, options);
  const step: UndoableStep = {
    label:
      plan.items.length === 1
        ? "Imported 1 item"
        : `Imported ${plan.items.length.toLocaleString("en")} items`,
    apply: [insertLists(plan.lists), insertItems(plan.items)],
    revert: [
      deleteItems(plan.items.map((item) => item.id)),
      deleteLists(plan.lists.map((list) => list.id)),
    ],
  };
  try {
    await runStatements(db, [insertLists(plan.lists)]);
    for (let done = 0; done < plan.items.length; done += PIECE) {
      if (options.signal.aborted) break;
      await runStatements(db, [insertItems(plan.items.slice(done, done + PIECE))]);
      options.onProgress(Math.min(done + PIECE, plan.items.length));
    }
  } catch (error) {
    await runStatements(db, step.revert);
    throw error;
  }
  if (!options.signal.aborted) return step;
  await runStatements(db, step.revert);
  return undefined;
}

/** Plans the new rows: the lists to create, and the items in the order of the file. */
async function planImport(
  db: WarrenDatabase,
  { items, fallbackList, nowMs, newId }: ImportOptions,
): Promise<{ readonly lists: readonly TodoList[]; readonly items: readonly TodoItem[] }> {
  const known = await db.sql<TodoList>`SELECT * FROM list ORDER BY position, id`;
  const idsByName = new Map(known.map((list) => [list.name.toLowerCase(), list.id]));
  const names = new Map<string, string>();
  const countsByList = new Map<string, number>();
  for (const item of items) {
    const name = item.list ?? fallbackList;
    const key = name.toLowerCase();
    countsByList.set(key, (countsByList.get(key) ?? 0) + 1);
    if (!idsByName.has(key) && !names.has(key)) names.set(key, name);
  }
  const listPositions = positionsAfter(await lastListPosition(db), names.size);
  const lists = [...names].map(([key, name], index): TodoList => {
    const id = newId();
    idsByName.set(key, id);
    const colour = COLOURS[(known.length + index) % COLOURS.length] ?? COLOURS[0];
    return { id, name, colour, position: listPositions[index] ?? "a0", created_ms: nowMs };
  });
  const positions = new Map<string, string[]>();
  for (const [key, count] of countsByList) {
    const [last] = await db.sql<{ position: string | null }>`
      SELECT max(position) AS position FROM item WHERE list_id = ${idsByName.get(key) ?? ""}`;
    positions.set(key, positionsAfter(last?.position ?? undefined, count).reverse());
  }
  return {
    lists,
    items: items.map((item) => {
      const key = (item.list ?? fallbackList).toLowerCase();
      return {
        id: newId(),
        list_id: idsByName.get(key) ?? "",
        title: item.title,
        note: item.note,
        due: item.due,
        done_ms: item.done ? doneMs(item, nowMs) : null,
        position: positions.get(key)?.pop() ?? "a0",
        created_ms: nowMs,
      };
    }),
  };
}

/** Returns the time of completion: the day in the file, but never one in the future. */
function doneMs({ doneOn }: ImportedItem, nowMs: number): number {
  return doneOn === undefined ? nowMs : Math.min(noonOf(doneOn).getTime(), nowMs);
}

/** Exports all items as CSV, with columns that an import recognizes. */
export async function exportCsv(db: WarrenDatabase): Promise<string> {
  const rows = await db.sql<TodoItem & { list: string | null }>`
    SELECT item.*, list.name AS list FROM item LEFT JOIN list ON list.id = item.list_id
    ORDER BY list.position, list.id, item.done_ms IS NOT NULL, item.position, item.id`;
  const records = rows.map((row) => [
    row.title,
    row.note,
    row.due ?? "",
    row.list ?? "",
    row.done_ms === null ? "" : dayOf(new Date(row.done_ms)),
  ]);
  return formatCsv([[...OWN_COLUMNS], ...records]);
}
