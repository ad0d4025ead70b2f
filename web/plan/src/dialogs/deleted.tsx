/**
 * The recently deleted rows of all devices, which can be restored. They come from a query over the
 * history: deletion moves nothing to a bin.
 */
import type { DeletedRow } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { describeAgo } from "../data/dates.js";
import { restoreDeleted } from "../data/deleted.js";
import { deviceName, loadNamed } from "../sync/device-names.js";
import { errorText } from "../sync/error-texts.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useStatus, useTask } from "../ui/hooks.js";

interface DeletedEntry {
  readonly table: "item" | "list";
  readonly deleted: DeletedRow;
}

export function DeletedDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { db, perform: act } = useApp();
  const { account } = useStatus(db);
  const [found, setFound] = useState<readonly DeletedEntry[]>();
  const task = useTask();
  const load = async (): Promise<readonly string[]> => {
    const of = async (table: DeletedEntry["table"]): Promise<DeletedEntry[]> =>
      (await db.deletedRows(table)).map((deleted) => ({ table, deleted }));
    const all = [...(await of("list")), ...(await of("item"))];
    setFound(all.sort((a, b) => b.deleted.changedMs - a.deleted.changedMs));
    return all.map(({ deleted }) => deleted.deviceName);
  };
  useEffect(() => task.run(() => loadNamed(db, load)), []);
  const restore = ({ table, deleted }: DeletedEntry): void =>
    task.run(async () => {
      await act(restoreDeleted(table, deleted.cells));
      await load();
    });
  return (
    <Dialog title="Recently deleted" onClose={onClose} testId="deleted">
      <p class="muted">The latest 100 lists and 100 items that were deleted, on any device.</p>
      <Problem text={errorText(task.error)} />
      {found?.length === 0 && <p class="calm">Nothing to restore.</p>}
      <ul class="entries">
        {(found ?? []).map((one) => (
          <li key={`${one.table} ${String(one.deleted.key[0])}`} data-testid="deleted-row">
            <p class="entry-head">
              <strong>{nameOf(one)}</strong>
              {one.table === "list" && " (list)"}
            </p>
            <p class="muted">
              Deleted {describeAgo(one.deleted.changedMs, Date.now())}
              {account !== undefined && ` on ${deviceName(one.deleted.deviceName)}`}
            </p>
            <button
              type="button"
              class="button button-small"
              disabled={task.isBusy}
              onClick={() => restore(one)}
            >
              Restore
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function nameOf({ table, deleted }: DeletedEntry): string {
  const name = deleted.cells[table === "item" ? "title" : "name"];
  return typeof name === "string" && name !== "" ? name : "Unnamed";
}
