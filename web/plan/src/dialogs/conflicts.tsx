/**
 * The dialog for lost edits and hidden rows: which item is affected, what happened to it, and what
 * the user can do.
 */
import type { Conflict, ConflictEdit, HiddenRow } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { describeAgo } from "../data/dates.js";
import { namesOf, type RowNames } from "../data/names.js";
import { deviceName, loadNamed } from "../sync/device-names.js";
import { errorText } from "../sync/error-texts.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useTask } from "../ui/hooks.js";
import { Cells, NAMES } from "./cells.js";

interface ConflictList {
  readonly conflicts: readonly Conflict[];
  readonly hiddenRows: readonly HiddenRow[];
  readonly names: RowNames;
}

type ConflictResolver = (work: () => Promise<void>, done: string) => void;

export function ConflictsDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { db, toast, recount } = useApp();
  const [found, setFound] = useState<ConflictList>();
  const task = useTask();
  const load = async (): Promise<readonly string[]> => {
    const [conflicts, hiddenRows] = [await db.conflicts(), await db.hiddenRows()];
    setFound({ conflicts, hiddenRows, names: await namesOf(db, conflicts) });
    recount();
    return conflicts.flatMap(({ lost, shown }) => [lost.deviceName, shown.deviceName]);
  };
  useEffect(() => task.run(() => loadNamed(db, load)), []);
  const settle: ConflictResolver = (work, done) =>
    task.run(async () => {
      await work();
      await load();
      toast({ text: done });
    });
  return (
    <Dialog title="Lost edits" onClose={onClose} testId="conflicts">
      <p class="muted">
        When two devices change the same thing before they sync, the newer change is shown. The
        other one is kept here until you decide.
      </p>
      <Problem text={errorText(task.error)} />
      {found?.conflicts.length === 0 && <p class="calm">No lost edits.</p>}
      <ul class="entries">
        {(found?.conflicts ?? []).map((conflict) => (
          <ConflictCard
            key={conflict.id}
            conflict={conflict}
            name={found?.names.get(conflict)}
            isBusy={task.isBusy}
            settle={settle}
          />
        ))}
      </ul>
      {found !== undefined && found.hiddenRows.length > 0 && (
        <section>
          <h3>Hidden items</h3>
          <p class="muted">These come from another device and can’t be shown without a change.</p>
          <ul class="entries">
            {found.hiddenRows.map((row) => (
              <HiddenRowCard key={row.id} row={row} isBusy={task.isBusy} settle={settle} />
            ))}
          </ul>
        </section>
      )}
    </Dialog>
  );
}

interface ConflictProps {
  readonly conflict: Conflict;
  readonly name: string | undefined;
  readonly isBusy: boolean;
  readonly settle: ConflictResolver;
}

function ConflictCard({ conflict, name, isBusy, settle }: ConflictProps): JSX.Element {
  const { db } = useApp();
  const { id, lost, shown } = conflict;
  const [restore, dismiss] = choices(conflict);
  return (
    <li data-testid="conflict">
      <p class="entry-head">
        <strong>{name ?? "Unnamed"}</strong>
        {conflict.table === "list" && " (list)"}
      </p>
      <div class="versus">
        <div>
          <h3>Lost: {originText(lost)}</h3>
          <Outcome edit={lost} />
        </div>
        <div>
          <h3>Current: {originText(shown)}</h3>
          <Outcome edit={shown} />
        </div>
      </div>
      <div class="button-row">
        <button
          type="button"
          class="button button-small"
          disabled={isBusy}
          onClick={() =>
            settle(() => db.restoreLostEdit(id), lost.deleted ? "Deleted" : "Edit restored")
          }
        >
          {restore}
        </button>
        <button
          type="button"
          class="button button-small"
          disabled={isBusy}
          onClick={() => settle(() => db.dismissLostEdit(id), "Kept the current version")}
        >
          {dismiss}
        </button>
      </div>
    </li>
  );
}

/** Returns the labels of the two choices: restore the lost edit, or keep the present state. */
function choices({ lost, shown }: Conflict): readonly [string, string] {
  if (shown.deleted) return ["Restore with this edit", "Keep deleted"];
  if (lost.deleted) return ["Delete anyway", "Keep"];
  return ["Restore this edit", "Keep current"];
}

function originText({ deviceName: name, changedMs }: ConflictEdit): string {
  return `${deviceName(name)}, ${describeAgo(changedMs, Date.now())}`;
}

function Outcome({ edit: { deleted, cells } }: { readonly edit: ConflictEdit }): JSX.Element {
  if (deleted) return <p>Deleted</p>;
  // An edit of the row as a whole: the row was inserted, or inserted again.
  if (Object.keys(cells).length === 0) return <p>Kept</p>;
  return <Cells cells={cells} />;
}

interface HiddenRowProps {
  readonly row: HiddenRow;
  readonly isBusy: boolean;
  readonly settle: ConflictResolver;
}

function HiddenRowCard({ row, isBusy, settle }: HiddenRowProps): JSX.Element {
  const { db } = useApp();
  const [value, setValue] = useState("");
  const name = row.cells[row.table === "list" ? "name" : "title"];
  // Matches, for example, "NOT NULL constraint failed: item.title".
  const column = /\b(?:item|list)\.(\w+)/.exec(row.reason)?.[1];
  const label = column === undefined ? undefined : NAMES[column];
  const show = (event: Event): void => {
    event.preventDefault();
    if (column === undefined) return;
    settle(() => db.resolveHiddenRow(row.id, column, value), "Now visible");
  };
  return (
    <li data-testid="hidden-row">
      <p class="entry-head">
        <strong>{typeof name === "string" && name !== "" ? name : "Unnamed"}</strong>
        {row.table === "list" && " (list)"}
      </p>
      <p class="muted">{row.reason}</p>
      <form class="button-row" onSubmit={show}>
        {row.sameAs !== undefined && (
          <button
            type="button"
            class="button button-small"
            disabled={isBusy}
            onClick={() => settle(() => db.mergeHiddenRow(row.id), "Merged")}
          >
            Merge with the visible one
          </button>
        )}
        {label !== undefined && (
          <>
            <input
              aria-label={label}
              placeholder={label}
              required
              value={value}
              onInput={(event) => setValue(event.currentTarget.value)}
            />
            <button type="submit" class="button button-small" disabled={isBusy}>
              Save and show
            </button>
          </>
        )}
        <button
          type="button"
          class="button button-small"
          disabled={isBusy}
          onClick={() => settle(() => db.deleteHiddenRow(row.id), "Deleted on all devices")}
        >
          Delete
        </button>
      </form>
    </li>
  );
}
