/**
 * What is being typed: kept in the file meanwhile, so that a tab or a browser that is closed loses
 * none of it. The tab that starts next writes what others have left.
 *
 * - A draft remembers the value that it began from. Where the row has another one since, both stay:
 *   the draft is written, and the other one is listed among the lost edits (`db.edit`).
 * - Drafts belong to this device; the table is not tracked.
 */
import type { WarrenDatabase } from "@warren/client";
import { restoreDeleted } from "./deleted.js";
import { runStatements } from "./run-statements.js";

export type ItemField = "title" | "note";

export interface ItemDraft {
  readonly text: string;
  /** What the row had when the typing began. */
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

/** Which tab types; its lock is held as long as it lives. */
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

/** Writes a draft; an item that was deleted meanwhile comes back with it. */
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

/** Says that this tab lives, and writes what tabs that do not have left. */
export async function settleDrafts(db: WarrenDatabase): Promise<void> {
  const locks = navigator.locks as LockManager | undefined;
  // Without locks a database is in memory, and nothing of it is left.
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
