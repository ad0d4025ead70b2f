/**
 * Reads the to-dos of an iCalendar file (RFC 5545) as a table. Events and other entries are only
 * counted.
 *
 * Lines are unfolded, texts unescaped, and parameters read as far as they matter. A UTC time
 * becomes its day on this device; a time in a zone that the file names keeps the day that is
 * written.
 */
import { columnsOf, nameKey, type ColumnMeaning } from "./columns.js";
import { isBlank, RecordCounts, type ImportTable, type TableRow } from "./table.js";
import { dayIn } from "./zone.js";

export function isCalendar(text: string): boolean {
  return /^\uFEFF?\s*BEGIN:VCALENDAR\s/i.test(text);
}

interface CalendarProperty {
  readonly name: string;
  readonly value: string;
}

interface CalendarToDo {
  readonly line: number;
  readonly properties: CalendarProperty[];
}

/** The properties of to-dos, in the order of the columns. Other properties are for programs. */
const COLUMNS: readonly (readonly [string, string, ColumnMeaning])[] = [
  ["SUMMARY", "Title", "title"],
  ["DESCRIPTION", "Note", "note"],
  ["DUE", "Due", "due"],
  ["LIST", "List", "list"],
  ["COMPLETED", "Completed", "done"],
  ["STATUS", "Status", "done"],
  ["RELATED-TO", "Part of", "detail"],
  ["PRIORITY", "Priority", "detail"],
  ["RRULE", "Repeat", "detail"],
  ["TRIGGER", "Reminder", "detail"],
  ["CATEGORIES", "Categories", "detail"],
  ["DTSTART", "Start", "detail"],
  ["LOCATION", "Location", "detail"],
  ["URL", "Link", "detail"],
  ["ATTACH", "Attachment", "detail"],
  ["COMMENT", "Comment", "detail"],
];

export function calendarTable(text: string): ImportTable {
  const { toDos, listName, others } = readCalendar(text);
  const titlesById = new Map(toDos.map((toDo) => [first(toDo, "UID"), first(toDo, "SUMMARY")]));
  const rows = toDos.map((toDo): TableRow => {
    const fields = COLUMNS.map(([name]) => {
      if (name === "LIST") return listName;
      const values = toDo.properties.filter((property) => property.name === name);
      return values.map(({ value }) => shown(name, value, titlesById)).join("\n");
    });
    return { line: toDo.line, fields };
  });
  const counted = new RecordCounts();
  counted.add("other", others);
  const meanings = new Map(COLUMNS.map(([, name, meaning]) => [nameKey(name), meaning]));
  const columns = columnsOf(
    COLUMNS.map(([, name]) => name),
    (name) => meanings.get(nameKey(name)),
  );
  const items = rows.filter(({ fields }) => !isBlank(fields));
  counted.add("blank", rows.length - items.length);
  return { columns, rows: items, counted };
}

function first(toDo: CalendarToDo, name: string): string {
  return toDo.properties.find((property) => property.name === name)?.value ?? "";
}

function shown(name: string, value: string, titlesById: ReadonlyMap<string, string>): string {
  switch (name) {
    case "RELATED-TO":
      return titlesById.get(value) ?? "";
    case "PRIORITY": {
      const level = Number(value);
      return level === 0 ? "" : level < 5 ? "high" : level === 5 ? "medium" : "low";
    }
    default:
      return value;
  }
}

interface CalendarContent {
  readonly toDos: readonly CalendarToDo[];
  readonly listName: string;
  readonly others: number;
}

/** The components of a calendar, apart from to-dos, that count as entries. */
const ENTRIES: ReadonlySet<string> = new Set(["VEVENT", "VJOURNAL", "VFREEBUSY"]);

function readCalendar(text: string): CalendarContent {
  const toDos: CalendarToDo[] = [];
  let listName = "";
  let others = 0;
  /** The components that are open, the innermost last. */
  const open: string[] = [];
  for (const { line, content } of unfold(text)) {
    const property = readProperty(content);
    if (property === undefined) continue;
    const { name, value } = property;
    if (name === "BEGIN") {
      const part = value.toUpperCase();
      open.push(part);
      if (part === "VTODO") toDos.push({ line, properties: [] });
      if (ENTRIES.has(part)) others += 1;
    } else if (name === "END") {
      // Components that were left open inside end with it.
      const at = open.lastIndexOf(value.toUpperCase());
      if (at >= 0) open.length = at;
    } else if (name === "X-WR-CALNAME" && !open.includes("VTODO")) {
      listName = value;
    } else if (open.at(-1) === "VTODO" || (name === "TRIGGER" && open.includes("VTODO"))) {
      toDos.at(-1)?.properties.push(property);
    }
  }
  return { toDos, listName, others };
}

/** Joins folded lines, and keeps the number of the line where each begins. */
function unfold(text: string): { readonly line: number; readonly content: string }[] {
  const lines: { line: number; content: string }[] = [];
  text.split(/\r\n|\n|\r/).forEach((content, index) => {
    const last = lines.at(-1);
    if (/^[ \t]/.test(content) && last !== undefined) last.content += content.slice(1);
    else lines.push({ line: index + 1, content });
  });
  return lines;
}

/** Parses a line: `NAME;PARAMETER=VALUE;PARAMETER="VALUE":TEXT`. */
function readProperty(content: string): CalendarProperty | undefined {
  const colon = valueStart(content);
  const [, name = "", parameters = ""] =
    /^([A-Z0-9-]+)(.*)$/s.exec(content.slice(0, Math.max(0, colon)).toUpperCase()) ?? [];
  if (name === "") return undefined;
  const raw = content.slice(colon + 1);
  if (/^(DUE|DTSTART|COMPLETED)$/.test(name)) return { name, value: dayText(raw) };
  // A sibling or a child is not an item that this item is a part of.
  if (name === "RELATED-TO" && /RELTYPE=(?!PARENT)/.test(parameters)) return undefined;
  return { name, value: unescape(raw) };
}

/** Returns the colon before the value; colons in quotes belong to parameters. */
function valueStart(content: string): number {
  let isQuoted = false;
  for (let at = 0; at < content.length; at += 1) {
    if (content[at] === '"') isQuoted = !isQuoted;
    if (content[at] === ":" && !isQuoted) return at;
  }
  return -1;
}

/**
 * Reads a date. `20270312` and `20270312T100000` are local to their own zone; `20270312T100000Z`
 * is a point in time.
 */
function dayText(raw: string): string {
  const parts = /^(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})?(Z)?)?$/.exec(raw.trim());
  if (!parts) return raw;
  const [, year, month, day, hour, minute, second = "00", zone] = parts;
  if (hour === undefined) return `${year}-${month}-${day}`;
  const written = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  if (zone === "Z") return dayIn(`${written}Z`, "", false);
  return `${hour}${minute}` === "0000" ? `${year}-${month}-${day}` : written.slice(0, 16);
}

function unescape(raw: string): string {
  return raw.replace(/\\([nN\\;,])/g, (_, char: string) =>
    char.toLowerCase() === "n" ? "\n" : char,
  );
}
