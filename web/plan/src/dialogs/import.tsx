/**
 * The dialog that imports a file. It first shows its reading of the file, which can be changed;
 * then the progress, with a way to stop. An import is one undo step.
 */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { readFile } from "../data/import/read.js";
import type { ImportFile } from "../data/import/table.js";
import {
  understand,
  type ImportChoices,
  type ImportedItem,
  type ParsedImport,
} from "../data/import/understand.js";
import { UnreadableFile, type FileFlaw } from "../data/import/unreadable.js";
import { importItems } from "../data/csv-transfer.js";
import { errorText } from "../sync/error-texts.js";
import { count, counted } from "../sync/sync-indicator.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useTask } from "../ui/hooks.js";
import { Icon } from "../ui/icons.js";
import { ImportPreview } from "./import-preview.js";

export function ImportDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { chosen, understood, done, ...controls } = useFileImport(onClose);
  const items = understood?.items ?? [];
  const isRunning = done !== undefined;
  return (
    <Dialog
      title="Import a file"
      onClose={isRunning ? undefined : onClose}
      testId="import"
      footer={
        isRunning ? (
          <button type="button" class="button" onClick={controls.cancel}>
            Cancel import
          </button>
        ) : (
          <button
            type="button"
            class="button button-primary"
            disabled={items.length === 0}
            onClick={controls.start}
          >
            {items.length === 0 ? "Import" : `Import ${counted(items.length, "item")}`}
          </button>
        )
      }
    >
      <Problem text={importProblem(controls.error)} />
      {!isRunning && <FilePicker name={chosen?.name} onFile={controls.choose} />}
      {!isRunning && chosen !== undefined && understood !== undefined && (
        <ImportPreview
          file={chosen.file}
          understood={understood}
          choices={chosen.choices}
          onChoices={controls.setChoices}
          onHeading={controls.setHeading}
        />
      )}
      {isRunning && <Progress done={done} items={items} />}
    </Dialog>
  );
}

interface ChosenFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly file: ImportFile;
  readonly choices: ImportChoices;
}

interface FileImport {
  readonly chosen: ChosenFile | undefined;
  /** The content of the file, read with these choices. */
  readonly understood: ParsedImport | undefined;
  /** The number of items already in the database, while the import runs. */
  readonly done: number | undefined;
  readonly error: unknown;
  readonly choose: (file: File | undefined) => void;
  readonly setChoices: (choices: ImportChoices) => void;
  /** Reads the file again, with a first line that has or does not have column names. */
  readonly setHeading: (hasHeading: boolean) => void;
  readonly start: () => void;
  readonly cancel: () => void;
}

/** Returns the chosen file, its parsed content, and the state of the import into the database. */
function useFileImport(onClose: () => void): FileImport {
  const app = useApp();
  const [chosen, setChosen] = useState<ChosenFile>();
  const [done, setDone] = useState<number>();
  const abort = useRef(new AbortController());
  const task = useTask();
  useEffect(() => () => abort.current.abort(), []);
  const understood = useMemo(() => chosen && understand(chosen.file, chosen.choices), [chosen]);

  const read = (name: string, bytes: Uint8Array, hasHeading?: boolean): void => {
    setChosen(undefined);
    const file = readFile(bytes, hasHeading);
    const meanings = file.columns.map(({ meaning }) => meaning);
    const choices = { meanings, dayOrder: undefined, locale: navigator.language };
    setChosen({ name, bytes, file, choices });
  };
  const run = async (): Promise<void> => {
    try {
      const step = await importItems(app.db, {
        items: understood?.items ?? [],
        fallbackList: chosen?.name.replace(/\.[^.]*$/, "") || "Imported",
        nowMs: Date.now(),
        newId: () => crypto.randomUUID(),
        onProgress: setDone,
        signal: abort.current.signal,
      });
      if (step === undefined) return app.toast({ text: "Import canceled, nothing was added" });
      app.undo.remember(step);
      app.toast({ text: step.label, action: { label: "Undo", run: app.undoLast } });
      app.navigate({ kind: "all" });
      onClose();
    } finally {
      setDone(undefined);
    }
  };
  return {
    chosen,
    understood,
    done,
    error: task.error,
    choose: (file) => {
      if (file === undefined) return;
      task.run(async () => read(file.name, new Uint8Array(await file.arrayBuffer())));
    },
    setChoices: (choices) => setChosen(chosen && { ...chosen, choices }),
    setHeading: (hasHeading) => chosen && read(chosen.name, chosen.bytes, hasHeading),
    start: () => {
      setDone(0);
      abort.current = new AbortController();
      task.run(run);
    },
    cancel: () => abort.current.abort(),
  };
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
        `Line ${count(flaw.line)} of the file has an opening quotation mark (") without a ` +
        "closing one. Nothing was imported. Correct the line and choose the file again."
      );
    case "foreign":
      return flaw.what === undefined
        ? "This isn’t a text file. Export your items as CSV and choose that file."
        : `This is ${flaw.what}. Export your items as CSV and choose that file.`;
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
      <span>{name ?? "Choose a file or drop it here"}</span>
      {name === undefined && (
        <span class="hint">
          A CSV file from a spreadsheet, an export from Todoist, TickTick, Asana or Microsoft To Do
          (Outlook), or a calendar (.ics). You’ll see a preview before anything is added.
        </span>
      )}
      <input
        type="file"
        class="visually-hidden"
        accept=".csv,.tsv,.txt,.ics,text/csv,text/plain,text/calendar"
        onChange={(event) => {
          onFile(event.currentTarget.files?.[0]);
          // Reset so that the same file can be chosen again after it was corrected.
          event.currentTarget.value = "";
        }}
      />
    </label>
  );
}
