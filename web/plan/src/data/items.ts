/**
 * The operations on items, each as a {@link UndoableStep}: SQL, and the SQL that reverts it.
 *
 * - A step changes only its own columns, and its reverse restores only those: changes of another
 *   device to the other columns stay.
 * - The reverse of a deletion has the whole row.
 */
import type { WarrenDatabase, SqlValue } from "@warren/client";
import type { Day } from "./dates.js";
import { place, positionBefore, positionsBefore, type PositionedRow } from "./fractional-order.js";
import type { TodoItem } from "./schema.js";
import type { BatchStatement, UndoableStep } from "./undo.js";

const COLUMNS = [
  "id",
  "list_id",
  "title",
  "note",
  "due",
  "done_ms",
  "position",
  "created_ms",
] as const;

const INSERT = `INSERT INTO item(${COLUMNS.join(", ")})
  VALUES (${COLUMNS.map(() => "?").join(", ")}) ON CONFLICT(id) DO `;

const UPDATE = `UPDATE SET list_id = excluded.list_id, title = excluded.title,
    note = excluded.note, due = excluded.due, done_ms = excluded.done_ms,
    position = excluded.position`;

const DELETE = "DELETE FROM item WHERE id = ?";

/** Inserts items; with `keep`, items that already exist stay unchanged. */
export function insertItems(
  items: readonly TodoItem[],
  known: "replace" | "keep" = "replace",
): BatchStatement {
  const sql = INSERT + (known === "keep" ? "NOTHING" : UPDATE);
  return { sql, rows: items.map((item) => COLUMNS.map((column) => item[column])) };
}

export function deleteItems(ids: readonly string[]): BatchStatement {
  return { sql: DELETE, rows: ids.map((id) => [id]) };
}

export async function itemById(db: WarrenDatabase, id: string): Promise<TodoItem | undefined> {
  const [item] = await db.sql<TodoItem>`SELECT * FROM item WHERE id = ${id}`;
  return item;
}

export interface NewItems {
  /** The new items, in their order. */
  readonly items: readonly { readonly id: string; readonly title: string }[];
  readonly listId: string;
  readonly due: Day | null;
  readonly createdMs: number;
}

/** Adds items at the top of their list. */
export async function addItems(db: WarrenDatabase, added: NewItems): Promise<UndoableStep> {
  const [first] = await db.sql<{ position: string }>`
    SELECT position FROM item WHERE list_id = ${added.listId} AND done_ms IS NULL
    ORDER BY position, id LIMIT 1`;
  const positions = positionsBefore(first?.position, added.items.length);
  const items = added.items.map(({ id, title }, index): TodoItem => {
    const position = positions[index] as string;
    const { listId: list_id, due, createdMs: created_ms } = added;
    return { id, list_id, title, note: "", due, done_ms: null, position, created_ms };
  });
  const [only] = items;
  return {
    label:
      items.length === 1 && only !== undefined
        ? `Added ${quote(only.title)}`
        : `Added ${items.length.toLocaleString("en")} items`,
    apply: [insertItems(items)],
    revert: [deleteItems(items.map((item) => item.id))],
  };
}

/** The columns that people edit by hand. */
export type ItemEdit = Partial<Pick<TodoItem, "title" | "note" | "due">>;

export function editItem(before: TodoItem, edit: ItemEdit): UndoableStep {
  const changed = (["title", "note", "due"] as const).filter(
    (column) => edit[column] !== undefined && edit[column] !== before[column],
  );
  const after = { ...before, ...edit };
  return {
    label: `Changed ${quote(after.title)}`,
    apply: changed.map((column) => set(column, [[after[column], before.id]])),
    revert: changed.map((column) => set(column, [[before[column], before.id]])),
  };
}

export function checkItem(item: TodoItem, doneMs: number | null): UndoableStep {
  return {
    label: `${doneMs === null ? "Reopened" : "Done:"} ${quote(item.title)}`,
    apply: [set("done_ms", [[doneMs, item.id]])],
    revert: [set("done_ms", [[item.done_ms, item.id]])],
  };
}

export function removeItem(item: TodoItem): UndoableStep {
  return {
    label: `Deleted ${quote(item.title)}`,
    apply: [deleteItems([item.id])],
    revert: [insertItems([item])],
  };
}

/** Deletes the finished items of a list. */
export async function removeDone(
  db: WarrenDatabase,
  listId: string,
): Promise<UndoableStep | undefined> {
  const items = await db.sql<TodoItem>`
    SELECT * FROM item WHERE list_id = ${listId} AND done_ms IS NOT NULL`;
  if (items.length === 0) return undefined;
  return {
    label:
      items.length === 1 ? "Deleted 1 finished item" : `Deleted ${items.length} finished items`,
    apply: [deleteItems(items.map((item) => item.id))],
    revert: [insertItems(items)],
  };
}

/**
 * The maximum number of rows in a tie: more devices are not expected to write at one place at
 * once.
 */
const FOLLOWING_MAX = 64;

/** Moves an item after another one of the same list, or to the top. */
export async function reorderItem(
  db: WarrenDatabase,
  item: TodoItem,
  afterId: string | undefined,
): Promise<UndoableStep> {
  const [before] =
    afterId === undefined
      ? []
      : await db.sql<PositionedRow>`SELECT id, position FROM item WHERE id = ${afterId}`;
  const { rows: following } = await db.query<PositionedRow>(
    `SELECT id, position FROM item WHERE list_id = ?1 AND done_ms IS NULL AND id <> ?2
       AND (position, id) > (?3, ?4) ORDER BY position, id LIMIT ${FOLLOWING_MAX}`,
    [item.list_id, item.id, before?.position ?? "", before?.id ?? ""],
  );
  const placement = place(item.id, before, following);
  const was = [item, ...following];
  const back = placement.map((placed) => [
    was.find((row) => row.id === placed.id)?.position ?? placed.position,
    placed.id,
  ]);
  return {
    label: `Moved ${quote(item.title)}`,
    apply: [
      set(
        "position",
        placement.map((placed) => [placed.position, placed.id]),
      ),
    ],
    revert: [set("position", back)],
  };
}

/** Moves an item to the top of another list. */
export async function moveItem(
  db: WarrenDatabase,
  item: TodoItem,
  list: { readonly id: string; readonly name: string },
): Promise<UndoableStep> {
  const [first] = await db.sql<{ position: string }>`
    SELECT position FROM item WHERE list_id = ${list.id} AND done_ms IS NULL
    ORDER BY position, id LIMIT 1`;
  const position = positionBefore(first?.position);
  const sql = "UPDATE item SET list_id = ?, position = ? WHERE id = ?";
  return {
    label: `Moved ${quote(item.title)} to ${quote(list.name)}`,
    apply: [{ sql, rows: [[list.id, position, item.id]] }],
    revert: [{ sql, rows: [[item.list_id, item.position, item.id]] }],
  };
}

function set(
  column: "title" | "note" | "due" | "done_ms" | "position",
  rows: readonly (readonly SqlValue[])[],
): BatchStatement {
  return { sql: `UPDATE item SET ${column} = ? WHERE id = ?`, rows };
}

const QUOTED_MAX = 40;

/** Quotes a title for use within a sentence. */
export function quote(title: string): string {
  const isLong = title.length > QUOTED_MAX;
  const short = isLong ? `${title.slice(0, QUOTED_MAX - 1).trimEnd()}…` : title;
  return `“${short}”`;
}
