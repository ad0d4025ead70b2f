/**
 * The dialog with the former states of an item; each can be restored.
 */
import type { HistoryEntry, SqlRow } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { describeAgo } from "../data/dates.js";
import { editItem, itemById } from "../data/items.js";
import type { TodoItem } from "../data/schema.js";
import { deviceName, loadNamed } from "../sync/device-names.js";
import { errorText } from "../sync/error-texts.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useTask } from "../ui/hooks.js";
import { Cells } from "./cells.js";

export function HistoryDialog({
  item,
  onClose,
}: DialogCloseProps & { readonly item: TodoItem }): JSX.Element {
  const app = useApp();
  const [entries, setEntries] = useState<readonly HistoryEntry[]>();
  const task = useTask();
  const load = async (): Promise<readonly string[]> => {
    const found = await app.db.history("item", item.id);
    setEntries(found);
    return found.map((entry) => entry.deviceName);
  };
  useEffect(() => task.run(() => loadNamed(app.db, load)), []);
  const restore = (cells: SqlRow): void =>
    task.run(async () => {
      const present = await itemById(app.db, item.id);
      if (present === undefined) return;
      await app.perform(editItem(present, editOf(cells)));
      onClose();
    });
  return (
    <Dialog title="History" onClose={onClose} testId="history">
      <Problem text={errorText(task.error)} />
      {entries === undefined && task.isBusy && <p class="muted">Loading…</p>}
      {entries?.length === 0 && (
        <p class="muted">Changes appear here once they have synced.</p>
      )}
      <ol class="entries">
        {(entries ?? []).map((entry) => (
          <li key={entry.timestamp}>
            <p class="entry-head">
              <strong>{entry.deleted ? "Deleted" : "Changed"}</strong>{" "}
              {describeAgo(entry.changedMs, Date.now())}
              {entry.deviceName !== "" && ` on ${deviceName(entry.deviceName)}`}
            </p>
            <Cells cells={entry.cells} />
            {hasEdit(entry.cells) && (
              <button
                type="button"
                class="button button-small"
                onClick={() => restore(entry.cells)}
              >
                Restore
              </button>
            )}
          </li>
        ))}
      </ol>
    </Dialog>
  );
}

function hasEdit(cells: SqlRow): boolean {
  return Object.keys(editOf(cells)).length > 0;
}

/** Returns the columns of a former state that people edit by hand. */
function editOf(cells: SqlRow): Partial<Pick<TodoItem, "title" | "note" | "due">> {
  const { title, note, due } = cells;
  return {
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof note === "string" ? { note } : {}),
    ...(typeof due === "string" || due === null ? { due } : {}),
  };
}
