/**
 * Drafts: text that is being typed is stored in the database, so that closing a tab or the browser
 * loses none of it. The next tab that starts writes the drafts that closed tabs left.
 *
 * - A draft remembers the value that it began from. If the row has a different value now, both are
 *   kept: the draft is written, and the other value is listed among the lost edits (`db.edit`).
 * - Drafts belong to this device; their table is not tracked.
 */
import type { WarrenDatabase } from "@warren/client";
import { restoreDeleted } from "./deleted.js";
import { runStatements } from "./run-statements.js";

export type ItemField = "title" | "note";

export interface ItemDraft {
  readonly text: string;
  /** The row's value when the typing began. */
  readonly seen: string;
}

/** A row of `draft`. */
type DraftRow = {
  readonly item_id: string;
  readonly field: ItemField;
  readonly tab: string;
  readonly text: string;
  readonly seen: string;
};

/** The id of this tab; the tab holds a lock of this name for as long as it lives. */
const TAB = `plan-tab:${Math.random().toString(36).slice(2)}`;

export async function keepDraft(
  db: WarrenDatabase,
  id: string,
  field: ItemField,
  draft: ItemDraft | undefined,
): Promise<void> {
  if (draft === undefined) {
    await db.sql`DELETE FROM draft WHERE item_id = ${id} AND field = ${field} AND tab = ${TAB}`;
  } else {
    await db.sql`INSERT OR REPLACE INTO draft(item_id, field, tab, text, seen)
      VALUES (${id}, ${field}, ${TAB}, ${draft.text}, ${draft.seen})`;
  }
}

/** Writes a draft; an item that was deleted in the meantime is restored with it. */
export async function writeDraft(
  db: WarrenDatabase,
  id: string,
  field: ItemField,
  { text, seen }: ItemDraft,
): Promise<"written" | "unseen" | "revived"> {
  const outcome = await db.edit("item", [id], field, text, { seen });
  if (outcome !== "missing") return outcome;
  const deletedRows = await db.deletedRows("item", { limit: 1_000 });
  const deleted = deletedRows.find(({ key }) => key[0] === id);
  const cells = deleted?.cells ?? { id, created_ms: Date.now() };
  const step = restoreDeleted("item", { ...cells, [field]: text });
  await runStatements(db, step.apply);
  return "revived";
}

/** Takes this tab's lock, and writes the drafts of tabs that no longer exist. */
export async function settleDrafts(db: WarrenDatabase): Promise<void> {
  const locks = navigator.locks as LockManager | undefined;
  // Without locks the database is in memory, so a closed tab leaves no drafts.
  if (locks === undefined) return;
  void locks.request(TAB, () => new Promise<never>(() => undefined));
  const held = (await locks.query()).held ?? [];
  const living = new Set([TAB, ...held.map(({ name }) => name)]);
  const left = await db.sql<DraftRow>`SELECT item_id, field, tab, text, seen FROM draft`;
  for (const { item_id: id, field, tab, ...draft } of left.filter((one) => !living.has(one.tab))) {
    await writeDraft(db, id, field, draft);
    await db.sql`DELETE FROM draft WHERE item_id = ${id} AND field = ${field} AND tab = ${tab}`;
  }
}
