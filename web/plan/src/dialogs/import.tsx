/**
 * Import of a file: what was understood of it is shown, and can be changed, before anything
 * happens; then how far it is, with a way to stop. One step for undo.
 */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { readFile } from "../data/import/read.js";
import type { ImportFile } from "../data/import/table.js";
import { understand, type ImportChoices, type ImportedItem } from "../data/import/understand.js";
import { UnreadableFile, type FileFlaw } from "../data/import/unreadable.js";
import { importItems } from "../data/csv-transfer.js";
import { errorText } from "../sync/error-texts.js";
import { count, counted } from "../sync/sync-indicator.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useTask } from "../ui/hooks.js";
import { Icon } from "../ui/icons.js";
import { ImportPreview } from "./import-preview.js";

interface ChosenFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly file: ImportFile;
}

export function ImportDialog({ onClose }: DialogCloseProps): JSX.Element {
  const app = useApp();
  const [chosen, setChosen] = useState<ChosenFile>();
  const [choices, setChoices] = useState<ImportChoices>();
  const [done, setDone] = useState<number>();
  const abort = useRef(new AbortController());
  const task = useTask();
  useEffect(() => () => abort.current.abort(), []);
  const understood = useMemo(
    () => chosen && choices && understand(chosen.file, choices),
    [chosen, choices],
  );
  const items = understood?.items ?? [];

  const show = (name: string, bytes: Uint8Array, hasHeading?: boolean): void => {
    setChosen(undefined);
    const file = readFile(bytes, hasHeading);
    setChosen({ name, bytes, file });
    const meanings = file.columns.map(({ meaning }) => meaning);
    setChoices({ meanings, dayOrder: undefined, locale: navigator.language });
  };
  const choose = (file: File | undefined): void => {
    if (file === undefined) return;
    task.run(async () => show(file.name, new Uint8Array(await file.arrayBuffer())));
  };
  const start = (): void => {
    setDone(0);
    abort.current = new AbortController();
    task.run(async () => {
      try {
        const step = await importItems(app.db, {
          items,
          fallbackList: chosen?.name.replace(/\.[^.]*$/, "") || "Imported",
          nowMs: Date.now(),
          newId: () => crypto.randomUUID(),
          onProgress: setDone,
          signal: abort.current.signal,
        });
        if (step === undefined) return app.toast({ text: "Import cancelled, nothing was added" });
        app.undo.remember(step);
        app.toast({ text: step.label, action: { label: "Undo", run: app.undoLast } });
        app.navigate({ kind: "all" });
        onClose();
      } finally {
        setDone(undefined);
      }
    });
  };
  const isRunning = done !== undefined;
  return (
    <Dialog
      title="Import a file"
      onClose={isRunning ? undefined : onClose}
      testId="import"
      footer={
        isRunning ? (
          <button type="button" class="button" onClick={() => abort.current.abort()}>
            Cancel import
          </button>
        ) : (
          <button
            type="button"
            class="button button-primary"
            disabled={items.length === 0}
            onClick={start}
          >
            {items.length === 0 ? "Import" : `Import ${counted(items.length, "item")}`}
          </button>
        )
      }
    >
      <Problem text={importProblem(task.error)} />
      {!isRunning && <FilePicker name={chosen?.name} onFile={choose} />}
      {!isRunning && chosen !== undefined && choices !== undefined && understood !== undefined && (
        <ImportPreview
          file={chosen.file}
          understood={understood}
          choices={choices}
          onChoices={setChoices}
          onHeading={(hasHeading) => show(chosen.name, chosen.bytes, hasHeading)}
        />
      )}
      {isRunning && <Progress done={done} items={items} />}
    </Dialog>
  );
}

interface ProgressProps {
  readonly done: number;
  readonly items: readonly ImportedItem[];
}

function Progress({ done, items }: ProgressProps): JSX.Element {
  return (
    <div class="busy-box">
      <p role="status">
        {count(done)} of {counted(items.length, "item")}
      </p>
      <progress max={items.length} value={done} aria-label="Import progress" />
    </div>
  );
}

function importProblem(error: unknown): string | undefined {
  return error instanceof UnreadableFile ? flawText(error.flaw) : errorText(error);
}

function flawText(flaw: FileFlaw): string {
  switch (flaw.kind) {
    case "openQuote":
      return (
        `In line ${count(flaw.line)} of the file a quotation mark (") opens a text and nothing ` +
        "closes it. Nothing was read: correct that line, and choose the file again."
      );
    case "foreign":
      return flaw.what === undefined
        ? "This file holds no text. Export your items as CSV, and choose that file."
        : `This is ${flaw.what}. Export your items as CSV, and choose that file.`;
    case "empty":
      return "This file is empty.";
  }
}

interface FilePickerProps {
  readonly name: string | undefined;
  readonly onFile: (file: File | undefined) => void;
}

function FilePicker({ name, onFile }: FilePickerProps): JSX.Element {
  return (
    <label
      class={`file-drop${name === undefined ? "" : " file-drop-chosen"}`}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        onFile(event.dataTransfer?.files[0]);
      }}
    >
      <Icon name="upload" size={24} />
      <span>{name ?? "Choose a file, or drop it here"}</span>
      {name === undefined && (
        <span class="hint">
          A CSV from a spreadsheet, an export of Todoist, TickTick, Asana or Microsoft To Do
          (Outlook), or a calendar (.ics). Nothing is added before you have seen it.
        </span>
      )}
      <input
        type="file"
        class="visually-hidden"
        accept=".csv,.tsv,.txt,.ics,text/csv,text/plain,text/calendar"
        onChange={(event) => {
          onFile(event.currentTarget.files?.[0]);
          // So that the same file can be chosen again after it was corrected.
          event.currentTarget.value = "";
        }}
      />
    </label>
  );
}
