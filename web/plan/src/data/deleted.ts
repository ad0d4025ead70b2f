/**
 * Restores deleted rows with their last values, as a {@link UndoableStep} like any other.
 */
import type { SqlRow, SqlValue } from "@warren/client";
import { deleteItems, insertItems, quote } from "./items.js";
import { deleteLists, insertLists } from "./lists.js";
import type { TodoItem, TodoList } from "./schema.js";
import type { UndoableStep } from "./undo.js";

/** Returns the step that restores a row; `cells` are its columns with their last values. */
export function restoreDeleted(table: "item" | "list", cells: SqlRow): UndoableStep {
  if (table === "list") {
    const list = toList(cells);
    return {
      label: `Restored the list ${quote(list.name)}`,
      apply: [insertLists([list])],
      revert: [deleteLists([list.id])],
    };
  }
  const item = toItem(cells);
  return {
    label: `Restored ${quote(item.title)}`,
    apply: [insertItems([item])],
    revert: [deleteItems([item.id])],
  };
}

/**
 * Builds an item. Another program may have left a column out, or written a value of another type.
 */
function toItem(row: SqlRow): TodoItem {
  return {
    id: text(row["id"]),
    list_id: text(row["list_id"]),
    title: text(row["title"]),
    note: text(row["note"]),
    due: row["due"] == null ? null : text(row["due"]),
    done_ms: row["done_ms"] == null ? null : Number(row["done_ms"]),
    position: text(row["position"]),
    created_ms: Number(row["created_ms"] ?? 0),
  };
}

function toList(row: SqlRow): TodoList {
  return {
    id: text(row["id"]),
    name: text(row["name"]),
    colour: row["colour"] == null ? null : text(row["colour"]),
    position: text(row["position"]),
    created_ms: Number(row["created_ms"] ?? 0),
  };
}

function text(value: SqlValue | undefined): string {
  return value == null ? "" : String(value);
}
