/**
 * The operations on lists, each as a {@link UndoableStep}. Deleting a list deletes its items, too,
 * and undo restores them.
 */
import type { WarrenDatabase } from "@warren/client";
import { deleteItems, insertItems, quote } from "./items.js";
import { place, positionAfter, type PositionedRow } from "./fractional-order.js";
import type { TodoItem, TodoList } from "./schema.js";
import type { BatchStatement, UndoableStep } from "./undo.js";

/** The names of the colors in `base.css`; any other value in the database is shown as the first. */
export const COLOURS = [
  "green",
  "blue",
  "violet",
  "pink",
  "red",
  "orange",
  "yellow",
  "grey",
] as const;
export type Colour = (typeof COLOURS)[number];

export function colourOf(list: { readonly colour: string | null } | undefined): Colour {
  return COLOURS.find((colour) => colour === list?.colour) ?? COLOURS[0];
}

const INSERT = `INSERT INTO list(id, name, colour, position, created_ms) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT(id) DO `;

const UPDATE = `UPDATE SET name = excluded.name, colour = excluded.colour,
    position = excluded.position`;

/** Inserts lists; with `keep`, lists that already exist stay unchanged. */
export function insertLists(
  lists: readonly TodoList[],
  known: "replace" | "keep" = "replace",
): BatchStatement {
  const rows = lists.map((list) => [
    list.id,
    list.name,
    list.colour,
    list.position,
    list.created_ms,
  ]);
  return { sql: INSERT + (known === "keep" ? "NOTHING" : UPDATE), rows };
}

export function deleteLists(ids: readonly string[]): BatchStatement {
  return { sql: "DELETE FROM list WHERE id = ?", rows: ids.map((id) => [id]) };
}

export async function lastListPosition(db: WarrenDatabase): Promise<string | undefined> {
  const [last] = await db.sql<{
    position: string | null;
  }>`SELECT max(position) AS position FROM list`;
  return last?.position ?? undefined;
}

export interface NewList {
  readonly id: string;
  readonly name: string;
  readonly colour: Colour;
  readonly createdMs: number;
}

export async function addList(db: WarrenDatabase, added: NewList): Promise<UndoableStep> {
  const list: TodoList = {
    id: added.id,
    name: added.name,
    colour: added.colour,
    position: positionAfter(await lastListPosition(db)),
    created_ms: added.createdMs,
  };
  return {
    label: `Added the list ${quote(list.name)}`,
    apply: [insertLists([list])],
    revert: [deleteLists([list.id])],
  };
}

export function editList(before: TodoList, name: string, colour: Colour): UndoableStep {
  const sql = "UPDATE list SET name = ?, colour = ? WHERE id = ?";
  return {
    label: `Changed the list ${quote(name)}`,
    apply: [{ sql, rows: [[name, colour, before.id]] }],
    revert: [{ sql, rows: [[before.name, before.colour, before.id]] }],
  };
}

export async function removeList(db: WarrenDatabase, list: TodoList): Promise<UndoableStep> {
  const items = await db.sql<TodoItem>`SELECT * FROM item WHERE list_id = ${list.id}`;
  return {
    label: `Deleted the list ${quote(list.name)}`,
    apply: [deleteItems(items.map((item) => item.id)), deleteLists([list.id])],
    revert: [insertLists([list]), insertItems(items)],
  };
}

/** Moves a list after another one, or to the top. */
export async function reorderList(
  db: WarrenDatabase,
  list: TodoList,
  afterId: string | undefined,
): Promise<UndoableStep> {
  const others = (
    await db.sql<PositionedRow>`SELECT id, position FROM list ORDER BY position, id`
  ).filter((other) => other.id !== list.id);
  const at = others.findIndex((other) => other.id === afterId) + 1;
  const following = others.slice(at);
  const placement = place(list.id, others[at - 1], following);
  const was = [list, ...following];
  const sql = "UPDATE list SET position = ? WHERE id = ?";
  const back = placement.map((placed) => [
    was.find((row) => row.id === placed.id)?.position ?? placed.position,
    placed.id,
  ]);
  return {
    label: `Moved the list ${quote(list.name)}`,
    apply: [{ sql, rows: placement.map((placed) => [placed.position, placed.id]) }],
    revert: [{ sql, rows: back }],
  };
}
