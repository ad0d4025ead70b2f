/**
 * Import of a CSV: what is in the file is shown before anything happens; then how far it is, with a
 * way to stop. One step for undo.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { importItems, itemsFromCsv, type ParsedItems } from "../data/transfer.js";
import { problemText } from "../sync/problems.js";
import { count } from "../sync/standing.js";
import { Dialog, Problem } from "../ui/dialog.js";
import { useTask } from "../ui/hooks.js";
import { Icon } from "../ui/icons.js";
import type { Closable } from "./dialogs.js";

interface Chosen {
  readonly name: string;
  readonly parsed: ParsedItems;
}

export function ImportDialog({ onClose }: Closable): JSX.Element {
  const app = useApp();
  const [chosen, setChosen] = useState<Chosen>();
  const [done, setDone] = useState<number>();
  const abort = useRef(new AbortController());
  const task = useTask();
  useEffect(() => () => abort.current.abort(), []);

  const choose = (file: File | undefined): void => {
    if (file === undefined) return;
    task.run(async () => setChosen({ name: file.name, parsed: itemsFromCsv(await file.text()) }));
  };
  const start = ({ name, parsed }: Chosen): void => {
    setDone(0);
    abort.current = new AbortController();
    task.run(async () => {
      try {
        const step = await importItems(app.db, {
          items: parsed.items,
          fallbackList: name.replace(/\.[^.]*$/, "") || "Imported",
          nowMs: Date.now(),
          newId: () => crypto.randomUUID(),
          onProgress: setDone,
          signal: abort.current.signal,
        });
        if (step === undefined) return app.toast({ text: "Import cancelled, nothing was added" });
        app.undo.remember(step);
        app.toast({ text: step.label, action: { label: "Undo", run: app.undoLast } });
        app.go({ kind: "all" });
        onClose();
      } finally {
        setDone(undefined);
      }
    });
  };
  const isRunning = done !== undefined;
  return (
    <Dialog
      title="Import a CSV"
      onClose={isRunning ? undefined : onClose}
      size="small"
      testId="import"
    >
      <Problem text={problemText(task.error)} />
      {!isRunning && (
        <>
          <p>
            Columns: {code("title")}, {code("note")}, {code("due")}, {code("list")}, {code("done")}.
            Only the title has to be there; lists that don’t exist are made.
          </p>
          <FilePicker name={chosen?.name} onFile={choose} />
        </>
      )}
      {chosen !== undefined && !isRunning && <Preview parsed={chosen.parsed} />}
      {chosen !== undefined && done !== undefined && (
        <div class="busy-box">
          <p role="status">
            {count(done)} of {count(chosen.parsed.items.length)} items
          </p>
          <progress max={chosen.parsed.items.length} value={done} aria-label="Import progress" />
        </div>
      )}
      <div class="button-row button-row-end">
        {isRunning ? (
          <button type="button" class="button" onClick={() => abort.current.abort()}>
            Cancel import
          </button>
        ) : (
          <button
            type="button"
            class="button button-primary"
            disabled={chosen === undefined || chosen.parsed.items.length === 0}
            onClick={() => chosen !== undefined && start(chosen)}
          >
            {chosen === undefined ? "Import" : `Import ${count(chosen.parsed.items.length)} items`}
          </button>
        )}
      </div>
    </Dialog>
  );
}

function code(text: string): JSX.Element {
  return <code>{text}</code>;
}

interface PickerProps {
  readonly name: string | undefined;
  readonly onFile: (file: File | undefined) => void;
}

function FilePicker({ name, onFile }: PickerProps): JSX.Element {
  return (
    <label
      class="file-drop"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        onFile(event.dataTransfer?.files[0]);
      }}
    >
      <Icon name="upload" size={24} />
      <span>{name ?? "Choose a file, or drop it here"}</span>
      <input
        type="file"
        class="visually-hidden"
        accept=".csv,text/csv,text/plain"
        onChange={(event) => onFile(event.currentTarget.files?.[0])}
      />
    </label>
  );
}

function Preview({ parsed }: { readonly parsed: ParsedItems }): JSX.Element {
  const { items, skipped } = parsed;
  if (items.length === 0) return <p class="muted">No record of this file has a title.</p>;
  const names = new Set(items.flatMap((item) => item.list ?? []));
  return (
    <div class="preview">
      <p>
        <strong>{count(items.length)} items</strong>
        {names.size > 0 && ` in ${count(names.size)} ${names.size === 1 ? "list" : "lists"}`}
        {skipped > 0 && `; ${count(skipped)} without a title are left out`}
      </p>
      <ul>
        {items.slice(0, 3).map((item, index) => (
          <li key={index}>{item.title}</li>
        ))}
      </ul>
    </div>
  );
}
