/**
 * The tables of Plan: lists, and the items in them.
 *
 * - Both tables sync; the indexes belong to this device, and so do drafts (`drafts.ts`).
 * - Rows are sorted by (`position`, `id`), see `fractional-order.ts`. `due` is a day (`dates.ts`).
 * - An item's list may be missing because another device deleted it. Such items are under "No
 *   list".
 */

export const DATABASE = "plan";

export const TRACKED = ["list", "item"] as const;

/** The migrations, each run once and in order. */
export const SCHEMA: readonly string[] = [
  `CREATE TABLE list(
     id TEXT PRIMARY KEY NOT NULL,
     name TEXT NOT NULL,
     colour TEXT,
     position TEXT NOT NULL,
     created_ms INTEGER NOT NULL
   );
   CREATE TABLE item(
     id TEXT PRIMARY KEY NOT NULL,
     list_id TEXT NOT NULL,
     title TEXT NOT NULL,
     note TEXT NOT NULL DEFAULT '',
     due TEXT,
     done_ms INTEGER,
     position TEXT NOT NULL,
     created_ms INTEGER NOT NULL
   );
   CREATE INDEX item_open ON item(list_id, position, id) WHERE done_ms IS NULL;
   CREATE INDEX item_due ON item(due, position, id) WHERE done_ms IS NULL AND due IS NOT NULL;
   CREATE INDEX item_new ON item(created_ms DESC, position, id) WHERE done_ms IS NULL;
   CREATE INDEX item_done ON item(done_ms DESC, id) WHERE done_ms IS NOT NULL;
   CREATE INDEX item_list_done ON item(list_id, done_ms DESC, id) WHERE done_ms IS NOT NULL;`,
  `CREATE TABLE draft(
     item_id TEXT NOT NULL,
     field TEXT NOT NULL,
     tab TEXT NOT NULL,
     text TEXT NOT NULL,
     seen TEXT NOT NULL,
     PRIMARY KEY (item_id, field, tab)
   );`,
];

/** A row of `list`. */
export type TodoList = {
  readonly id: string;
  readonly name: string;
  readonly colour: string | null;
  readonly position: string;
  readonly created_ms: number;
};

/** A row of `item`. */
export type TodoItem = {
  readonly id: string;
  readonly list_id: string;
  readonly title: string;
  readonly note: string;
  readonly due: string | null;
  readonly done_ms: number | null;
  readonly position: string;
  readonly created_ms: number;
};
