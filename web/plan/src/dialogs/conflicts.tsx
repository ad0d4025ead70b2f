/**
 * Edits that lost to others made without knowing of them, and rows that cannot be shown: what
 * happened to which item, and what can be done about it.
 */
import type { Conflict, HeldRow, SqlRow } from "@warren/client";
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
  readonly held: readonly HeldRow[];
  readonly names: RowNames;
}

type ConflictResolver = (work: () => Promise<void>, done: string) => void;

export function ConflictsDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { db, toast, recount } = useApp();
  const [found, setFound] = useState<ConflictList>();
  const task = useTask();
  const load = async (): Promise<readonly string[]> => {
    const [conflicts, held] = [await db.conflicts(), await db.held()];
    setFound({ conflicts, held, names: await namesOf(db, conflicts) });
    recount();
    return conflicts.flatMap(({ device, keptDevice }) => [device, keptDevice]);
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
        When two devices change the same thing without knowing of each other, the later change is
        shown. The other one is kept here until you decide.
      </p>
      <Problem text={errorText(task.error)} />
      {found?.conflicts.length === 0 && <p class="calm">No edit was lost.</p>}
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
      {found !== undefined && found.held.length > 0 && (
        <section>
          <h3>Held back</h3>
          <p class="muted">These were made on another device, and cannot be shown as they are.</p>
          <ul class="entries">
            {found.held.map((held) => (
              <HeldCard key={held.id} held={held} isBusy={task.isBusy} settle={settle} />
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
  const { id, lost, kept, lostDeleted, keptDeleted } = conflict;
  const [restore, dismiss] = choices(conflict);
  return (
    <li data-testid="conflict">
      <p class="entry-head">
        <strong>{name ?? "Without a name"}</strong>
        {conflict.table === "list" && " (list)"}
      </p>
      <div class="versus">
        <div>
          <h3>
            Lost: {deviceName(conflict.device)}, {describeAgo(conflict.timeMs, Date.now())}
          </h3>
          <Outcome cells={lost} isDeleted={lostDeleted} />
        </div>
        <div>
          <h3>
            {keptDeleted ? "Instead" : "Shown instead"}: {deviceName(conflict.keptDevice)},{" "}
            {describeAgo(conflict.keptMs, Date.now())}
          </h3>
          <Outcome cells={kept} isDeleted={keptDeleted} />
        </div>
      </div>
      <div class="button-row">
        <button
          type="button"
          class="button button-small"
          disabled={isBusy}
          onClick={() => settle(() => db.restore(id), lostDeleted ? "It is deleted" : "It is back")}
        >
          {restore}
        </button>
        <button
          type="button"
          class="button button-small"
          disabled={isBusy}
          onClick={() => settle(() => db.dismiss(id), "It stays as it is")}
        >
          {dismiss}
        </button>
      </div>
    </li>
  );
}

/** What can be done: to take the lost edit, or to leave things as they are. */
function choices({ lostDeleted, keptDeleted }: Conflict): readonly [string, string] {
  if (keptDeleted) return ["Bring it back with this edit", "Leave it deleted"];
  if (lostDeleted) return ["Delete it after all", "Keep it"];
  return ["Put the lost one back", "Keep what is shown"];
}

interface OutcomeProps {
  readonly cells: SqlRow;
  readonly isDeleted: boolean;
}

function Outcome({ cells, isDeleted }: OutcomeProps): JSX.Element {
  if (isDeleted) return <p>Deleted</p>;
  // An edit of the row as a whole: it was made, or made again.
  if (Object.keys(cells).length === 0) return <p>Kept</p>;
  return <Cells cells={cells} />;
}

interface HeldCardProps {
  readonly held: HeldRow;
  readonly isBusy: boolean;
  readonly settle: ConflictResolver;
}

function HeldCard({ held, isBusy, settle }: HeldCardProps): JSX.Element {
  const { db } = useApp();
  const [value, setValue] = useState("");
  const name = held.row[held.table === "list" ? "name" : "title"];
  // "NOT NULL constraint failed: item.title"
  const column = /\b(?:item|list)\.(\w+)/.exec(held.reason)?.[1];
  const label = column === undefined ? undefined : NAMES[column];
  const show = (event: Event): void => {
    event.preventDefault();
    if (column === undefined) return;
    settle(() => db.give(held.id, column, value), "It is shown now");
  };
  return (
    <li data-testid="held">
      <p class="entry-head">
        <strong>{typeof name === "string" && name !== "" ? name : "Without a name"}</strong>
        {held.table === "list" && " (list)"}
      </p>
      <p class="muted">{held.reason}</p>
      <form class="button-row" onSubmit={show}>
        {held.sameAs !== undefined && (
          <button
            type="button"
            class="button button-small"
            disabled={isBusy}
            onClick={() => settle(() => db.join(held.id), "They are one now")}
          >
            It is the same as the one that is shown
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
              Show it with this
            </button>
          </>
        )}
        <button
          type="button"
          class="button button-small"
          disabled={isBusy}
          onClick={() => settle(() => db.letGo(held.id), "It is deleted, on all devices")}
        >
          Delete it
        </button>
      </form>
    </li>
  );
}
