/**
 * What an item was before, and edits that lost against others; each can be put back.
 */
import type { Conflict, HistoryEntry, Row, SqlValue } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { describeAgo } from "../data/dates.js";
import { editItem, itemById } from "../data/items.js";
import type { Item } from "../data/schema.js";
import { problemText } from "../sync/problems.js";
import { Dialog, Problem } from "../ui/dialog.js";
import { useTask } from "../ui/hooks.js";
import type { Closable } from "./dialogs.js";

/** Columns that people know, by the names they have on the screen. */
const NAMES: Readonly<Record<string, string>> = {
  title: "Title",
  note: "Note",
  due: "Due",
  done_ms: "Done",
  list_id: "List",
  name: "Name",
  colour: "Colour",
  position: "Place",
};

export function HistoryDialog({ item, onClose }: Closable & { readonly item: Item }): JSX.Element {
  const app = useApp();
  const [entries, setEntries] = useState<readonly HistoryEntry[]>();
  const task = useTask();
  useEffect(() => task.run(async () => setEntries(await app.db.history("item", item.id))), []);
  const restore = (cells: Row): void =>
    task.run(async () => {
      const present = await itemById(app.db, item.id);
      if (present === undefined) return;
      await app.act(editItem(present, editOf(cells)));
      onClose();
    });
  return (
    <Dialog title="History" onClose={onClose} testId="history">
      <Problem text={problemText(task.error)} />
      {entries === undefined && task.isBusy && <p class="muted">Looking it up…</p>}
      {entries?.length === 0 && (
        <p class="muted">Changes show up here once they have been synced.</p>
      )}
      <ol class="entries">
        {(entries ?? []).map((entry) => (
          <li key={entry.timestamp}>
            <p class="entry-head">
              <strong>{entry.deleted ? "Deleted" : "Changed"}</strong>{" "}
              {describeAgo(entry.timeMs, Date.now())}
              {entry.device !== "" && ` on ${entry.device}`}
            </p>
            <Cells cells={entry.cells} />
            {hasEdit(entry.cells) && (
              <button
                type="button"
                class="button button-small"
                onClick={() => restore(entry.cells)}
              >
                Put this back
              </button>
            )}
          </li>
        ))}
      </ol>
    </Dialog>
  );
}

export function ConflictsDialog({ onClose }: Closable): JSX.Element {
  const { db, toast } = useApp();
  const [conflicts, setConflicts] = useState<readonly Conflict[]>();
  const task = useTask();
  useEffect(() => task.run(async () => setConflicts(await db.conflicts())), []);
  const settle = (work: () => Promise<void>, done: string): void =>
    task.run(async () => {
      await work();
      setConflicts(await db.conflicts());
      toast({ text: done });
    });
  return (
    <Dialog title="Lost edits" onClose={onClose} testId="conflicts">
      <p class="muted">
        When two devices change the same thing at the same time, the later change is shown. The
        other one is kept here.
      </p>
      <Problem text={problemText(task.error)} />
      {conflicts?.length === 0 && <p class="calm">No edit was lost.</p>}
      <ul class="entries">
        {(conflicts ?? []).map((conflict) => (
          <li key={conflict.id} data-testid="conflict">
            <p class="entry-head">
              {conflict.device === "" ? "A device" : <strong>{conflict.device}</strong>},{" "}
              {describeAgo(conflict.timeMs, Date.now())}
            </p>
            <div class="versus">
              <div>
                <h3>Lost</h3>
                <Cells cells={conflict.lost} />
              </div>
              <div>
                <h3>Shown instead</h3>
                <Cells cells={conflict.kept} />
              </div>
            </div>
            <button
              type="button"
              class="button button-small"
              disabled={task.isBusy}
              onClick={() => settle(() => db.restore(conflict.id), "The edit is back")}
            >
              Put the lost one back
            </button>{" "}
            <button
              type="button"
              class="button button-small"
              disabled={task.isBusy}
              onClick={() => settle(() => db.dismiss(conflict.id), "What is shown stays")}
            >
              Keep what is shown
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function Cells({ cells }: { readonly cells: Row }): JSX.Element {
  const { lists } = useApp();
  const text = (column: string, value: SqlValue): string => {
    if (column === "done_ms") return value === null ? "No" : "Yes";
    if (column === "list_id") return lists.find((list) => list.id === value)?.name ?? "No list";
    return value === null || value === "" ? "–" : String(value);
  };
  const shown = Object.entries(cells).filter(
    ([column]) => NAMES[column] !== undefined && column !== "position",
  );
  if (shown.length === 0) return <p class="muted">Moved in its list</p>;
  return (
    <dl class="cells">
      {shown.map(([column, value]) => (
        <div key={column}>
          <dt>{NAMES[column]}</dt>
          <dd>{text(column, value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function hasEdit(cells: Row): boolean {
  return Object.keys(editOf(cells)).length > 0;
}

/** The columns of a former state that people edit by hand. */
function editOf(cells: Row): Partial<Pick<Item, "title" | "note" | "due">> {
  const { title, note, due } = cells;
  return {
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof note === "string" ? { note } : {}),
    ...(typeof due === "string" || due === null ? { due } : {}),
  };
}
