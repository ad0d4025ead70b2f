/**
 * Reads a table from a file's bytes: finds the kind of file, the start of its table, and the
 * likely meanings of its columns. The meaning of the rows → `understand.ts`.
 */
import { parseCsv, type CsvRecord } from "../csv.js";
import { formatOf, type AppFormat } from "./apps.js";
import { calendarTable, isCalendar } from "./calendar.js";
import { columnsOf, isHeading, meaningOfName, nameKey, OWN_COLUMNS } from "./columns.js";
import { decodeFile } from "./decode.js";
import {
  isBlank,
  RecordCounts,
  type ImportFile,
  type ImportTable,
  type TableRow,
} from "./table.js";
import { TODOIST_COLUMNS, todoistRows } from "./todoist.js";
import { UnreadableFile } from "./unreadable.js";

/**
 * Reads a file. Throws {@link UnreadableFile}, and no other error.
 *
 * `hasHeading` is the user's answer to whether the first record has the names of columns.
 */
export function readFile(bytes: Uint8Array, hasHeading?: boolean): ImportFile {
  const { text, encoding } = decodeFile(bytes);
  if (isCalendar(text)) {
    return { ...calendarTable(text), app: "iCalendar", encoding, hasHeading: undefined };
  }
  const records = parseCsv(text);
  if (records.length === 0) throw new UnreadableFile({ kind: "empty" });
  const start = findFormat(records);
  if (start !== undefined) {
    const { app } = start.format;
    return { ...appTable(records, start), app, encoding, hasHeading: undefined };
  }
  const isNamed = hasHeading ?? isHeading(records[0]?.fields ?? []);
  return { ...plainTable(records, isNamed), app: undefined, encoding, hasHeading: isNamed };
}

interface FormatStart {
  readonly format: AppFormat;
  /** The index of the record that names the columns. */
  readonly index: number;
}

/** The maximum number of lines that an app may write before its table. */
const PREAMBLE_MAX = 20;

function findFormat(records: readonly CsvRecord[]): FormatStart | undefined {
  for (const [index, { fields }] of records.slice(0, PREAMBLE_MAX).entries()) {
    const format = formatOf(fields);
    if (format !== undefined) return { format, index };
  }
  return undefined;
}

function plainTable(records: readonly CsvRecord[], isNamed: boolean): ImportTable {
  const counted = new RecordCounts();
  counted.add("heading", isNamed ? 1 : 0);
  const rows = withoutBlanks(isNamed ? records.slice(1) : records, counted);
  const width = records.reduce((most, { fields }) => Math.max(most, fields.length), 0);
  const names = Array.from({ length: width }, (_, index) =>
    isNamed ? (records[0]?.fields[index] ?? "") : "",
  );
  // Without names, the columns are in the order of Plan's own export.
  const columns = isNamed
    ? columnsOf(names)
    : columnsOf(names).map((column, index) => ({
        ...column,
        meaning: OWN_COLUMNS[index] ?? "detail",
      }));
  return { columns, rows, counted };
}

function withoutBlanks(records: readonly CsvRecord[], counted: RecordCounts): TableRow[] {
  const rows = records.filter(({ fields }) => !isBlank(fields));
  counted.add("blank", records.length - rows.length);
  return rows;
}

function appTable(records: readonly CsvRecord[], { format, index }: FormatStart): ImportTable {
  const width = records.reduce((most, { fields }) => Math.max(most, fields.length), 0);
  const heading = padded(records[index]?.fields ?? [], width);
  const counted = new RecordCounts();
  counted.add("setting", index);
  counted.add("heading");
  const below = records.slice(index + 1);
  const isTodoist = format.app === "Todoist";
  const names = isTodoist ? [...heading, ...TODOIST_COLUMNS] : heading;
  const found = isTodoist
    ? todoistRows(heading, below, counted)
    : withoutBlanks(below, counted).map(({ line, fields }) => ({
        line,
        fields: padded(fields, width),
      }));
  const rows = rewritten(found, names, format);
  const columns = columnsOf(names, (name) => format.meanings[nameKey(name)] ?? meaningOfName(name));
  if (format.parent === undefined) return { columns, rows, counted };
  const parents = parentTitles(rows, names, format.parent);
  return {
    columns: [...columns, { name: "Part of", meaning: "detail" }],
    rows: rows.map(({ line, fields }, at) => ({ line, fields: [...fields, parents[at] ?? ""] })),
    counted,
  };
}

function padded(fields: readonly string[], width: number): string[] {
  return Array.from({ length: Math.max(width, fields.length) }, (_, index) => fields[index] ?? "");
}

function rewritten(
  rows: readonly TableRow[],
  names: readonly string[],
  format: AppFormat,
): TableRow[] {
  const indexes = new Map(names.map((name, index) => [nameKey(name), index]));
  const rewrites = names.map((name) => format.rewrite[nameKey(name)]);
  return rows.map(({ line, fields }) => {
    const cell = (name: string): string => fields[indexes.get(name) ?? -1] ?? "";
    return { line, fields: fields.map((value, index) => rewrites[index]?.(value, cell) ?? value) };
  });
}

/** Returns, for each row, the title of the row that it is a part of. */
function parentTitles(
  rows: readonly TableRow[],
  names: readonly string[],
  { id, parentId }: NonNullable<AppFormat["parent"]>,
): string[] {
  const at = (name: string): number => names.findIndex((known) => nameKey(known) === name);
  const [idAt, parentAt, titleAt] = [at(id), at(parentId), at("title")];
  const titles = new Map(rows.map(({ fields }) => [fields[idAt] ?? "", fields[titleAt] ?? ""]));
  titles.delete("");
  return rows.map(({ fields }) => titles.get(fields[parentAt] ?? "") ?? "");
}
