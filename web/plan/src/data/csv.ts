/**
 * Comma-separated values (RFC 4180): reading and writing, without the meaning of columns.
 *
 * - Fields are quoted with `"`, a quote inside is doubled, and quoted fields may contain line
 *   ends.
 * - Also read: `;` or a tab between the fields (spreadsheets write these in some countries;
 *   Excel's first line `sep=;` names the separator), a byte order mark, line ends of any kind.
 *   Empty lines are not records.
 * - A quote that is never closed is an error, not a field that contains the rest of the file.
 * - {@link parseCsv} restores exactly the fields that {@link formatCsv} wrote.
 */
import { UnreadableFile } from "./import/unreadable.js";

const SEPARATORS = [",", ";", "\t"] as const;

export interface CsvRecord {
  /** The line where the record begins; the first line is 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** Parses all records, including the header; each has as many fields as its line. */
export function parseCsv(text: string): CsvRecord[] {
  const { source, separator, firstLine } = begin(text);
  const records: CsvRecord[] = [];
  let fields: string[] = [];
  let at = 0;
  let start = 0;
  let line = firstLine;
  while (at < source.length) {
    const field = readField(source, at, separator);
    if (field === undefined) {
      throw new UnreadableFile({ kind: "openQuote", line: line + lineEnds(source, start, at) });
    }
    fields.push(field.value);
    at = field.end;
    if (source[at] === separator) {
      at += 1;
      // A separator at the very end still has an empty field after it.
      if (at < source.length) continue;
      fields.push("");
    }
    if (source[at] === "\r" && source[at + 1] === "\n") at += 1;
    at += 1;
    // An empty line is not a record, but one empty quoted field is.
    if (fields.length > 1 || fields[0] !== "" || source[start] === '"') {
      records.push({ line, fields });
    }
    fields = [];
    line += lineEnds(source, start, at);
    start = at;
  }
  return records;
}

interface CsvHeader {
  readonly source: string;
  readonly separator: string;
  readonly firstLine: number;
}

function begin(text: string): CsvHeader {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const named = /^sep=([,;\t])(?:\r\n|\n|\r)/i.exec(source);
  if (named?.[1] === undefined) return { source, separator: separatorOf(source), firstLine: 1 };
  return { source: source.slice(named[0].length), separator: named[1], firstLine: 2 };
}

function lineEnds(source: string, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at += 1) {
    const char = source[at];
    if (char === "\n" || (char === "\r" && source[at + 1] !== "\n")) count += 1;
  }
  return count;
}

interface CsvField {
  readonly value: string;
  /** The position of the separator or line end after the field. */
  readonly end: number;
}

/** Reads one field; `undefined` if its quote is not closed. */
function readField(source: string, start: number, separator: string): CsvField | undefined {
  if (source[start] !== '"') {
    const end = plainEnd(source, start, separator);
    return { value: source.slice(start, end), end };
  }
  let value = "";
  let at = start + 1;
  for (;;) {
    const quote = source.indexOf('"', at);
    if (quote < 0) return undefined;
    value += source.slice(at, quote);
    if (source[quote + 1] !== '"') {
      const end = plainEnd(source, quote + 1, separator);
      const rest = source.slice(quote + 1, end);
      // The opening quote of a field some lines below has closed this field by mistake.
      if (rest.trim() !== "" && /[\r\n]/.test(value)) return undefined;
      // Text between the closing quote and the separator belongs to the field, as written.
      return { value: value + rest, end };
    }
    value += '"';
    at = quote + 2;
  }
}

function plainEnd(source: string, start: number, separator: string): number {
  let end = start;
  while (end < source.length) {
    const char = source[end];
    if (char === separator || char === "\n" || char === "\r") break;
    end += 1;
  }
  return end;
}

/** Returns the separator that is most frequent in the first line, outside of quotes. */
function separatorOf(source: string): string {
  const counts = new Map<string, number>(SEPARATORS.map((separator) => [separator, 0]));
  let isQuoted = false;
  for (const char of source) {
    if (char === '"') isQuoted = !isQuoted;
    if (isQuoted) continue;
    if (char === "\n" || char === "\r") break;
    const count = counts.get(char);
    if (count !== undefined) counts.set(char, count + 1);
  }
  const most = Math.max(...counts.values());
  return SEPARATORS.find((separator) => counts.get(separator) === most) ?? SEPARATORS[0];
}

/** Formats records with commas and CRLF; fields are quoted only if necessary. */
export function formatCsv(records: Iterable<readonly string[]>): string {
  let text = "";
  for (const record of records) {
    // A record of one empty field would be an empty line.
    const line = record.length === 1 && record[0] === "" ? '""' : record.map(quoted).join(",");
    text += `${line}\r\n`;
  }
  return text;
}

/** Matches fields that need quotes, also those that would be misread at the beginning of a file. */
const QUOTED = /[",;\t\r\n]|^\uFEFF|^sep=/i;

function quoted(field: string): string {
  return QUOTED.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
