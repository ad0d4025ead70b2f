/**
 * Items from and to CSV: which column means what, and writing them into the database in pieces.
 *
 * - The header names the columns, in any order: title, note, due, list, done. Without a header the
 *   columns are in that order.
 * - Lists are found by their names, and made where there are none.
 * - An import is one step for undo. One that is cancelled, or that fails, leaves nothing behind.
 */
import type { Database } from "@warren/client";
import { formatCsv, parseCsv } from "./csv.js";
import { dayOf, parseDay, type Day } from "./dates.js";
import { deleteItems, insertItems } from "./items.js";
import { COLOURS, deleteLists, insertLists, lastListPosition } from "./lists.js";
import { positionsAfter } from "./order.js";
import { runStatements } from "./run.js";
import type { Item, List } from "./schema.js";
import type { Step } from "./undo.js";

const FIELDS = ["title", "note", "due", "list", "done"] as const;
type Field = (typeof FIELDS)[number];

/** Other names that spreadsheets and other to-do apps give these columns. */
const SYNONYMS: Readonly<Record<string, Field>> = {
  task: "title",
  name: "title",
  content: "title",
  notes: "note",
  description: "note",
  "due date": "due",
  date: "due",
  project: "list",
  folder: "list",
  completed: "done",
  status: "done",
};

export interface ImportedItem {
  readonly title: string;
  readonly note: string;
  readonly due: Day | null;
  /** `undefined`: the list that the user chose. */
  readonly list: string | undefined;
  readonly done: boolean;
}

export interface ParsedItems {
  readonly items: readonly ImportedItem[];
  /** Records without a title. */
  readonly skipped: number;
}

export function itemsFromCsv(text: string): ParsedItems {
  const records = parseCsv(text);
  const header = columnsOf(records[0] ?? []);
  const columns = header ?? new Map(FIELDS.map((field, index) => [field, index]));
  const items: ImportedItem[] = [];
  const rows = header === undefined ? records : records.slice(1);
  for (const record of rows) {
    const item = itemOf(record, columns);
    if (item !== undefined) items.push(item);
  }
  return { items, skipped: rows.length - items.length };
}

/** `undefined` if the record is not a header: none of its fields is called "title". */
function columnsOf(record: readonly string[]): ReadonlyMap<Field, number> | undefined {
  const columns = new Map<Field, number>();
  record.forEach((text, index) => {
    const name = text.trim().toLowerCase();
    const field = FIELDS.find((known) => known === name) ?? SYNONYMS[name];
    if (field !== undefined && !columns.has(field)) columns.set(field, index);
  });
  return columns.has("title") ? columns : undefined;
}

function itemOf(
  record: readonly string[],
  columns: ReadonlyMap<Field, number>,
): ImportedItem | undefined {
  const field = (name: Field): string => (record[columns.get(name) ?? -1] ?? "").trim();
  const title = field("title").replace(/\s+/g, " ");
  if (title === "") return undefined;
  return {
    title,
    note: field("note"),
    due: parseDay(field("due")) ?? null,
    list: field("list") || undefined,
    done: !/^(|0|no|n|false|open|todo|pending)$/i.test(field("done")),
  };
}

export interface ImportOptions {
  readonly items: readonly ImportedItem[];
  /** Where items go that name no list: the name of a list, made if there is none. */
  readonly fallbackList: string;
  readonly nowMs: number;
  readonly newId: () => string;
  readonly onProgress: (done: number) => void;
  readonly signal: AbortSignal;
}

const PIECE = 500;

/** `undefined` if it was cancelled. The step has been run already. */
export async function importItems(db: Database, options: ImportOptions): Promise<Step | undefined> {
  const plan = await planImport(db, options);
  const step: Step = {
    label: `Imported ${plan.items.length.toLocaleString("en")} items`,
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

/** The rows that are to be: new lists, and the items in the order of the file. */
async function planImport(
  db: Database,
  { items, fallbackList, nowMs, newId }: ImportOptions,
): Promise<{ readonly lists: readonly List[]; readonly items: readonly Item[] }> {
  const known = await db.sql<List>`SELECT * FROM list ORDER BY position, id`;
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
  const lists = [...names].map(([key, name], index): List => {
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
        done_ms: item.done ? nowMs : null,
        position: positions.get(key)?.pop() ?? "a0",
        created_ms: nowMs,
      };
    }),
  };
}

/** Everything, as a CSV that {@link itemsFromCsv} reads back. */
export async function exportCsv(db: Database): Promise<string> {
  const rows = await db.sql<Item & { list: string | null }>`
    SELECT item.*, list.name AS list FROM item LEFT JOIN list ON list.id = item.list_id
    ORDER BY list.position, list.id, item.done_ms IS NOT NULL, item.position, item.id`;
  const records = rows.map((row) => [
    row.title,
    row.note,
    row.due ?? "",
    row.list ?? "",
    row.done_ms === null ? "" : dayOf(new Date(row.done_ms)),
  ]);
  return formatCsv([[...FIELDS], ...records]);
}
