/**
 * The preview of an import: how many items of which kind, what happens to everything else, and the
 * meanings of the columns, which can be changed.
 */
import type { JSX } from "preact";
import { useApp } from "../app-context.js";
import { describeDay } from "../data/dates.js";
import { withMeaning, type ColumnMeaning } from "../data/import/columns.js";
import { readDays, type DayOrder } from "../data/import/day-text.js";
import type { ImportFile, RecordKind } from "../data/import/table.js";
import type { ImportChoices, ImportedItem, ParsedImport } from "../data/import/understand.js";
import { count, counted } from "../sync/sync-indicator.js";

interface ImportPreviewProps {
  readonly file: ImportFile;
  readonly understood: ParsedImport;
  readonly choices: ImportChoices;
  readonly onChoices: (choices: ImportChoices) => void;
  readonly onHeading: (hasHeading: boolean) => void;
}

export function ImportPreview(props: ImportPreviewProps): JSX.Element {
  const { file, understood, choices, onChoices } = props;
  const { doubtful } = understood.due;
  return (
    <>
      <div class="preview" data-testid="import-preview">
        <p>
          <Summary file={file} items={understood.items} />
        </p>
        <ul>
          {understood.items.slice(0, SAMPLES_MAX).map((item, index) => (
            <Sample key={index} item={item} />
          ))}
        </ul>
      </div>
      {doubtful !== undefined && (
        <DayOrderChoice
          text={doubtful}
          order={understood.due.order}
          locale={choices.locale}
          onOrder={(dayOrder) => onChoices({ ...choices, dayOrder })}
        />
      )}
      <Remarks file={file} understood={understood} />
      <ColumnTable {...props} />
    </>
  );
}

const SAMPLES_MAX = 3;

function Summary({
  file,
  items,
}: Pick<ImportPreviewProps, "file"> & Pick<ParsedImport, "items">): JSX.Element {
  const from = file.app === undefined ? "" : ` from ${file.app}`;
  if (items.length === 0) return <>This file has no items with a title.</>;
  const lists = new Set(items.flatMap((item) => item.list ?? [])).size;
  const done = items.filter((item) => item.done).length;
  const undated = items.filter((item) => item.due === null).length;
  const facts = [
    `${count(items.length - done)} open`,
    `${count(done)} done`,
    `${count(undated)} without a date`,
  ];
  return (
    <>
      <strong>{counted(items.length, "item")}</strong>
      {from}
      {lists > 0 && ` in ${counted(lists, "list")}`}: {facts.join(", ")}
    </>
  );
}

function Sample({ item }: { readonly item: ImportedItem }): JSX.Element {
  const { today } = useApp().now;
  const facts = [
    item.list,
    item.due === null ? undefined : describeDay(item.due, today),
    item.done ? "done" : undefined,
  ];
  const shown = facts.filter((fact) => fact !== undefined);
  return (
    <li dir="auto">
      {item.title}
      {shown.length > 0 && <span class="muted"> · {shown.join(" · ")}</span>}
    </li>
  );
}

interface DayOrderChoiceProps {
  readonly text: string;
  readonly order: DayOrder;
  readonly locale: string;
  readonly onOrder: (order: DayOrder) => void;
}

/** Asks for the order of day and month if nothing in the file shows it. */
function DayOrderChoice({ text, order, locale, onOrder }: DayOrderChoiceProps): JSX.Element {
  const shown = (wanted: DayOrder): string => {
    const day = readDays([text], { locale, order: wanted }).days[0]?.day ?? "";
    const long = { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" } as const;
    return day && new Date(day).toLocaleDateString("en-GB", long);
  };
  return (
    <fieldset class="segments" data-testid="day-order">
      <legend>In this file, {text} means</legend>
      {(["dayFirst", "monthFirst"] as const).map((known) => (
        <label key={known}>
          <input
            type="radio"
            name="day-order"
            checked={order === known}
            onChange={() => onOrder(known)}
          />
          <span>{shown(known)}</span>
        </label>
      ))}
    </fieldset>
  );
}

const EXAMPLES_MAX = 4;
const NO_TASK = ["entry that isn’t a task", "entries that aren’t tasks"] as const;

function Remarks({
  file,
  understood,
}: Pick<ImportPreviewProps, "file" | "understood">): JSX.Element | null {
  const remarks = remarksOf(file, understood);
  if (remarks.length === 0) return null;
  return (
    <ul class="remarks" data-testid="import-remarks">
      {remarks.map((remark) => (
        <li key={remark}>{remark}</li>
      ))}
    </ul>
  );
}

/** Describes what happens to everything that is not simply an item. */
function remarksOf(file: ImportFile, understood: ParsedImport): string[] {
  const { statuses, untitled, due, keptColumns, leftColumns } = understood;
  const statusWords = (isDone: boolean): string =>
    examples(
      statuses
        .filter((status) => status.isDone === isDone)
        .map(({ word, count: number }) => `“${word}” (${count(number)})`),
    );
  const number = (kind: RecordKind): number => file.counted.get(kind) ?? 0;
  const between = [
    ...(number("section") > 0 ? [counted(number("section"), "section")] : []),
    ...(number("comment") > 0 ? [counted(number("comment"), "comment")] : []),
  ];
  const remarks: [boolean, string][] = [
    [statusWords(true) !== "", `Done: ${statusWords(true)}.`],
    [statusWords(false) !== "", `Open: ${statusWords(false)}.`],
    [
      due.unread.length > 0,
      `${counted(due.unread.length, "date")} could not be read and will be kept in the notes: ` +
        `${examples(due.unread)}.`,
    ],
    [
      untitled.length > 0,
      `${counted(untitled.length, "row")} without a title will be skipped: ` +
        `${untitled.length === 1 ? "line" : "lines"} ${examples(untitled.map(count))}.`,
    ],
    [between.length > 0, `Kept in the notes: ${between.join(", ")}.`],
    [keptColumns.length > 0, `Columns kept in the notes: ${examples(keptColumns, 30)}.`],
    [leftColumns.length > 0, `Columns skipped: ${examples(leftColumns, 30)}.`],
    [number("other") > 0, `Skipped: ${counted(number("other"), ...NO_TASK)}.`],
    [
      number("setting") > 0,
      `Skipped: ${counted(number("setting"), "line")} with information about the file.`,
    ],
    [
      file.encoding === "windows-1252",
      "This file isn’t UTF-8 and was read as Windows-1252. Check that accented letters look right.",
    ],
  ];
  return remarks.filter(([isTold]) => isTold).map(([, text]) => text);
}

function examples(texts: readonly string[], most = EXAMPLES_MAX): string {
  const rest = texts.length - most;
  const shown = texts
    .slice(0, most)
    .map((text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text));
  return `${shown.join(", ")}${rest > 0 ? ` and ${count(rest)} more` : ""}`;
}

const MEANING_NAMES: Readonly<Record<ColumnMeaning, string>> = {
  title: "Title",
  note: "Note",
  due: "Due date",
  list: "List",
  done: "Done",
  detail: "Keep in the note",
  none: "Skip",
};

function ColumnTable({ file, choices, onChoices, onHeading }: ImportPreviewProps): JSX.Element {
  const used = file.columns
    .map((column, index) => ({ name: column.name, index, samples: samplesOf(file, index) }))
    .filter(({ samples }) => samples !== "");
  return (
    <details class="columns" open={file.app === undefined}>
      <summary>Columns</summary>
      {file.hasHeading !== undefined && (
        <label class="choice choice-inline">
          <input
            type="checkbox"
            checked={file.hasHeading}
            onChange={(event) => onHeading(event.currentTarget.checked)}
          />
          The first line contains column names
        </label>
      )}
      <ul>
        {used.map(({ name, index, samples }) => (
          <li key={index}>
            <label for={`column-${index}`}>
              <strong>{name}</strong>
              <span class="muted" dir="auto">
                {samples}
              </span>
            </label>
            <select
              id={`column-${index}`}
              value={choices.meanings[index] ?? "none"}
              onChange={(event) =>
                onChoices({
                  ...choices,
                  meanings: withMeaning(
                    choices.meanings,
                    index,
                    event.currentTarget.value as ColumnMeaning,
                  ),
                })
              }
            >
              {(Object.keys(MEANING_NAMES) as ColumnMeaning[]).map((meaning) => (
                <option key={meaning} value={meaning}>
                  {MEANING_NAMES[meaning]}
                </option>
              ))}
            </select>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Returns the first texts of a column, or an empty text if it has none. */
function samplesOf(file: ImportFile, index: number): string {
  const samples = new Set<string>();
  for (const { fields } of file.rows) {
    const text = (fields[index] ?? "").trim().replace(/\s+/g, " ");
    if (text !== "") samples.add(text);
    if (samples.size === 2) break;
  }
  return examples([...samples]);
}
