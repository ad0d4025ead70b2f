/**
 * Comma-separated values as RFC 4180 has them: reading and writing, no meaning of columns.
 *
 * - Fields are quoted with `"`, a quote inside is doubled, and quoted fields may hold line ends.
 * - Also read: `;` or a tab between the fields (spreadsheets write these in some countries), a byte
 *   order mark, line ends of any kind. Empty lines are no records.
 * - What {@link formatCsv} writes, {@link parseCsv} reads back as it was.
 */

const SEPARATORS = [",", ";", "\t"] as const;

/** All records, the header among them; each has as many fields as its line has. */
export function parseCsv(text: string): string[][] {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const separator = separatorOf(source);
  const records: string[][] = [];
  let record: string[] = [];
  let at = 0;
  let start = 0;
  while (at < source.length) {
    const field = readField(source, at, separator);
    record.push(field.value);
    at = field.end;
    if (source[at] === separator) {
      at += 1;
      // A separator at the very end still has an empty field after it.
      if (at < source.length) continue;
      record.push("");
    }
    if (source[at] === "\r" && source[at + 1] === "\n") at += 1;
    at += 1;
    // An empty line is none; one empty field in quotes is.
    if (record.length > 1 || record[0] !== "" || source[start] === '"') records.push(record);
    record = [];
    start = at;
  }
  return records;
}

interface Field {
  readonly value: string;
  /** Where the separator or the line end after it stands. */
  readonly end: number;
}

function readField(source: string, start: number, separator: string): Field {
  if (source[start] !== '"') {
    const end = plainEnd(source, start, separator);
    return { value: source.slice(start, end), end };
  }
  let value = "";
  let at = start + 1;
  for (;;) {
    const quote = source.indexOf('"', at);
    // An opening quote that is never closed takes the rest of the file.
    if (quote < 0) return { value: value + source.slice(at), end: source.length };
    value += source.slice(at, quote);
    if (source[quote + 1] !== '"') {
      // What follows the closing quote before the separator belongs to the field, as written.
      const end = plainEnd(source, quote + 1, separator);
      return { value: value + source.slice(quote + 1, end), end };
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

/** The separator that the first line has most of, quoted parts left out. */
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

/** One text with commas and CRLF; fields are quoted only where they must be. */
export function formatCsv(records: Iterable<readonly string[]>): string {
  let text = "";
  for (const record of records) {
    // A record of one empty field would be an empty line.
    const line = record.length === 1 && record[0] === "" ? '""' : record.map(quoted).join(",");
    text += `${line}\r\n`;
  }
  return text;
}

function quoted(field: string): string {
  return /[",;\t\r\n]|^\uFEFF/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
