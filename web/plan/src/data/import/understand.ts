/**
 * Turns the rows of a table into items, by the meanings of their columns, and reports what
 * happened to everything else.
 *
 * - An item is done only if a known word or a date says so. All other items stay open.
 * - Content that has no place of its own goes into the note, under its column's name: for example
 *   a date that could not be read, a time of day, and a status beyond done and not done.
 */
import type { Day } from "../dates.js";
import { fold } from "../fold.js";
import { nameKey, type ColumnMeaning } from "./columns.js";
import { readDays, type DayColumn, type DayOrder } from "./day-text.js";
import type { ImportTable, TableRow } from "./table.js";
import { DONE_WORDS, OPEN_WORDS } from "./words.js";

export interface ImportedItem {
  readonly title: string;
  readonly note: string;
  readonly due: Day | null;
  /** The item's list; `undefined` means the list that the user chose. */
  readonly list: string | undefined;
  readonly done: boolean;
  /** The day on which the item was done, if the file has it. */
  readonly doneOn: Day | undefined;
}

export interface ImportChoices {
  /** The meanings of the columns, in their order. */
  readonly meanings: readonly ColumnMeaning[];
  readonly dayOrder: DayOrder | undefined;
  /** The user's locale, for names of months and for ambiguous dates. */
  readonly locale: string;
}

export interface ParsedImport {
  readonly items: readonly ImportedItem[];
  /** The lines of the rows that are left out, because they have no title. */
  readonly untitled: readonly number[];
  readonly due: {
    readonly order: DayOrder;
    /** A date that could be read in two ways, if the file does not settle it. */
    readonly doubtful: string | undefined;
    /** Texts that are not dates, as written; they are kept in the notes. */
    readonly unread: readonly string[];
  };
  /** Status words, with the number of items that have each, the most frequent first. */
  readonly statuses: readonly StatusCount[];
  /** The names of the columns kept in the notes, unless they are empty. */
  readonly keptColumns: readonly string[];
  readonly leftColumns: readonly string[];
}

export interface StatusCount {
  readonly word: string;
  readonly count: number;
  readonly isDone: boolean;
}

export function understand(table: ImportTable, choices: ImportChoices): ParsedImport {
  const columns = new ColumnReader(table, choices);
  const items: ImportedItem[] = [];
  const untitled: number[] = [];
  const unread: string[] = [];
  const statuses = new Map<string, StatusCount>();
  table.rows.forEach((row, index) => {
    const title = columns.title(row);
    if (title === "") {
      untitled.push(row.line);
      return;
    }
    const notes = columns.notes(row);
    const due = columns.due(row, index);
    if (due.unread !== undefined) unread.push(due.unread);
    if (due.kept !== undefined) notes.push(due.kept);
    const done = columns.done(row, index);
    for (const status of done.statuses) countStatus(statuses, status);
    items.push({
      title,
      note: [...columns.texts(row), notes.concat(done.kept).join("\n")]
        .filter((part) => part !== "")
        .join("\n\n"),
      due: due.day,
      list: columns.list(row),
      done: done.isDone,
      doneOn: done.day,
    });
  });
  return {
    items,
    untitled,
    due: { ...columns.dueOrder, unread },
    statuses: [...statuses.values()].sort((a, b) => b.count - a.count),
    keptColumns: columns.namesOf("detail"),
    leftColumns: columns.namesOf("none"),
  };
}

function countStatus(statuses: Map<string, StatusCount>, { word, isDone }: StatusWord): void {
  const key = fold(word);
  const before = statuses.get(key);
  statuses.set(key, { word: before?.word ?? word, count: (before?.count ?? 0) + 1, isDone });
}

interface StatusWord {
  readonly word: string;
  readonly isDone: boolean;
}

interface DueReading {
  readonly day: Day | null;
  readonly unread?: string;
  /** The line that the note gets. */
  readonly kept?: string;
}

interface DoneReading {
  readonly isDone: boolean;
  readonly day: Day | undefined;
  readonly statuses: readonly StatusWord[];
  readonly kept: readonly string[];
}

/** Reads rows by the meanings of their columns; dates are read per column, for a common order. */
class ColumnReader {
  readonly #table: ImportTable;
  readonly #meanings: readonly ColumnMeaning[];
  readonly #due: DayColumn;
  /** The dates in `done` columns, by the index of the column. */
  readonly #doneDays: ReadonlyMap<number, DayColumn>;

  constructor(table: ImportTable, { meanings, dayOrder, locale }: ImportChoices) {
    this.#table = table;
    this.#meanings = meanings;
    const options = { locale, order: dayOrder };
    this.#due = readDays(this.#texts(meanings.indexOf("due")), options);
    // The dates of one file are all written in the same order.
    const order = dayOrder ?? this.#due.order;
    this.#doneDays = new Map(
      this.#indexesOf("done").map((at) => [at, readDays(this.#texts(at), { locale, order })]),
    );
  }

  get dueOrder(): { readonly order: DayOrder; readonly doubtful: string | undefined } {
    return { order: this.#due.order, doubtful: this.#due.doubtful };
  }

  title(row: TableRow): string {
    return this.#field(row, this.#meanings.indexOf("title")).replace(/\s+/g, " ");
  }

  list(row: TableRow): string | undefined {
    return this.#field(row, this.#meanings.indexOf("list")) || undefined;
  }

  /** Returns the texts that make up the note itself. */
  texts(row: TableRow): string[] {
    return this.#indexesOf("note").map((at) => this.#field(row, at));
  }

  /** Returns the fields that are kept in the note, one line each. */
  notes(row: TableRow): string[] {
    const kept = this.#indexesOf("detail").filter((at) => this.#field(row, at) !== "");
    return kept.map((at) => this.#named(at, this.#field(row, at)));
  }

  due(row: TableRow, index: number): DueReading {
    const at = this.#meanings.indexOf("due");
    const text = this.#field(row, at);
    if (text === "") return { day: null };
    const read = this.#due.days[index];
    if (read === undefined) return { day: null, unread: text, kept: this.#named(at, text) };
    return read.hasTime ? { day: read.day, kept: this.#named(at, text) } : { day: read.day };
  }

  done(row: TableRow, index: number): DoneReading {
    const statuses: StatusWord[] = [];
    const kept: string[] = [];
    let day: Day | undefined;
    for (const at of this.#indexesOf("done")) {
      const text = this.#field(row, at);
      const read = isOfWords(this.#name(at)) ? undefined : this.#doneDays.get(at)?.days[index];
      const word = text.toLowerCase();
      if (read !== undefined) {
        day ??= read.day;
      } else if (text !== "") {
        const isDone = DONE_WORDS.has(fold(text));
        statuses.push({ word: text, isDone });
        if (!isDone && !OPEN_WORDS.has(fold(word))) kept.push(this.#named(at, text));
      }
    }
    const isDone = day !== undefined || statuses.some((status) => status.isDone);
    return { isDone, day, statuses, kept };
  }

  /** Returns the names of the columns that have this meaning and are not empty. */
  namesOf(meaning: ColumnMeaning): string[] {
    const isUsed = (at: number): boolean =>
      this.#table.rows.some((row) => this.#field(row, at) !== "");
    return this.#indexesOf(meaning)
      .filter(isUsed)
      .map((at) => this.#name(at));
  }

  #indexesOf(meaning: ColumnMeaning): number[] {
    return this.#meanings.flatMap((known, at) => (known === meaning ? [at] : []));
  }

  #texts(at: number): string[] {
    return this.#table.rows.map((row) => this.#field(row, at));
  }

  #field(row: TableRow, at: number): string {
    return (row.fields[at] ?? "").trim();
  }

  #name(at: number): string {
    return this.#table.columns[at]?.name ?? "";
  }

  #named(at: number, text: string): string {
    return `${this.#name(at)}: ${text}`;
  }
}

/**
 * Whether a column of this name has status words: a date in it is when the status changed, which
 * does not mean that the item is done.
 */
function isOfWords(name: string): boolean {
  return /\b(status|state|stage|progress|statut|estado|stato|статус)\b/u.test(nameKey(name));
}
