/**
 * Fuzz tests for the import's file reader. Files are made by a grammar, so that the expected
 * result is known, and then broken in random places.
 *
 * - The reader never throws anything but `UnreadableFile`, and always returns.
 * - Each row of the input is an item of the output, or counted.
 * - Open work never becomes finished work.
 *
 * `WARREN_FUZZ_MINUTES=30` turns the test into a search; `WARREN_FUZZ_SEED` starts at the seed of
 * a failure. A failure prints its seed and its file.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatCsv, parseCsv } from "../../plan/src/data/csv.js";
import { addDays, daysBetween } from "../../plan/src/data/dates.js";
import { MEANINGS, type ColumnMeaning } from "../../plan/src/data/import/columns.js";
import { readDays } from "../../plan/src/data/import/day-text.js";
import { readFile } from "../../plan/src/data/import/read.js";
import type { ImportFile } from "../../plan/src/data/import/table.js";
import { understand } from "../../plan/src/data/import/understand.js";
import { UnreadableFile } from "../../plan/src/data/import/unreadable.js";

const MINUTES = Number(process.env["WARREN_FUZZ_MINUTES"] ?? 0.03);
const FIRST_SEED = Number(process.env["WARREN_FUZZ_SEED"] ?? 1);

/** The generator from Numerical Recipes: the same seed gives the same files. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 2_654_435_761) >>> 0;
  }

  roll(sides: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * sides);
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.roll(choices.length)] as T;
  }

  some<T>(make: () => T, most: number): T[] {
    return Array.from({ length: this.roll(most + 1) }, make);
  }
}

/** Runs the test for as many seeds as the time allows. */
function forSeeds(minutes: number, run: (dice: Dice) => void): void {
  const endMs = performance.now() + minutes * 60_000;
  let seed = FIRST_SEED;
  do {
    try {
      run(new Dice(seed));
    } catch (error) {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    }
    seed += 1;
  } while (performance.now() < endMs);
}

const TITLES = [
  "Milk",
  "  two  words ",
  'a "quoted" one',
  "two\nlines",
  "a;b,c\td",
  "Ünï",
  "☑",
  "",
];
const OPEN = ["", "open", "In progress", "Not started", "0", "no", "Backlog", "Offen", "2", "-1"];
const DONE = ["done", "Completed", "x", "YES", "1", "true", "erledigt"];
const DATES = [
  ...["", "2027-03-12", "12/03/2027", "3/13/27", "12 March 2027", "Mar 12, 2027", "46458", "soon"],
  ...["2027/03/12", "31.02.2027", "2027-03-12T10:00:00Z", "every day", "12:30", "00/00/00", "1e9"],
];
const HEADINGS: Readonly<Record<string, readonly string[]>> = {
  title: ["Title", "Task", "NAME", "Aufgabe"],
  note: ["Notes", "description", "Beschreibung"],
  due: ["Due", "due_date", "Fällig"],
  list: ["List", "Project", "Liste"],
  done: ["Done", "Status", "Completed"],
  detail: ["Priority", "Who", ""],
  none: ["ID", "created at"],
};
const APPS = [
  "TYPE,CONTENT,DESCRIPTION,PRIORITY,INDENT,AUTHOR,RESPONSIBLE,DATE,DATE_LANG,TIMEZONE",
  '"Date: x"\n"Version: 7.1"\n"Folder Name","List Name","Title","Kind","Content","Due Date",' +
    '"Status","Timezone","taskId","parentId","Completed Time","Is All Day"',
  "Task ID,Created At,Completed At,Last Modified,Name,Section/Column,Due Date,Notes,Projects",
  '"Subject","Due Date","Date Completed","% Complete","Reminder On/Off","Status","Priority"',
];
const APP_CELLS = [
  ...[
    "task",
    "section",
    "note",
    "meta",
    "1",
    "2",
    "3",
    "-1",
    "",
    "Europe/Berlin",
    "Nowhere/At all",
  ],
  ...["2027-03-12T10:00:00+0000", "0/0/00", "true", "False", "every day", "9".repeat(40)],
];

interface GrammarFile {
  readonly text: string;
  /** The titles of the expected items, and whether they are done. */
  readonly wanted: readonly { readonly title: string; readonly done: boolean }[];
}

function grammarFile(dice: Dice): GrammarFile {
  const kinds = ["title", ...dice.some(() => dice.pick(["note", "due", "detail", "none"]), 4)];
  kinds.splice(dice.roll(kinds.length + 1), 0, ...dice.pick([["done"], ["done", "list"], []]));
  const rows = dice.some(() => kinds.map((kind) => cellOf(dice, kind)), 8);
  const heading = kinds.map((kind) => dice.pick(HEADINGS[kind] ?? [""]));
  const titleAt = kinds.indexOf("title");
  const doneAt = kinds.indexOf("done");
  const wanted = rows.map((row) => ({
    title: (row[titleAt] ?? "").trim().replace(/\s+/g, " "),
    done: DONE.includes(row[doneAt] ?? ""),
  }));
  return {
    text: formatCsv([heading, ...rows]),
    wanted: wanted.filter(({ title }) => title !== ""),
  };
}

function cellOf(dice: Dice, kind: string): string {
  if (kind === "due") return dice.pick(DATES);
  if (kind === "done") return dice.pick(dice.roll(2) === 0 ? OPEN : DONE);
  return dice.pick(TITLES);
}

function appFile(dice: Dice): string {
  const heading = dice.pick(APPS);
  const row = (): string => dice.some(() => dice.pick([...APP_CELLS, ...TITLES]), 12).join(",");
  return [heading, ...dice.some(row, 8)].join("\n");
}

function calendarFile(dice: Dice): string {
  const lines = dice.some(
    () =>
      dice.pick([
        ...["BEGIN:VTODO", "END:VTODO", "BEGIN:VEVENT", "END:VEVENT", "BEGIN:VALARM", "END:VALARM"],
        ...[
          "SUMMARY:One\\, two",
          " folded",
          "DUE;VALUE=DATE:20270312",
          'DUE;TZID="A:B":20270312T090000',
        ],
        ...[
          "DUE:20279999T999999Z",
          "UID:1",
          "RELATED-TO;RELTYPE=CHILD:1",
          "RELATED-TO:1",
          "STATUS:",
        ],
        ...["COMPLETED:20270101T000000Z", "PRIORITY:x", ":", ";;;=", "X-WR-CALNAME:Garden"],
      ]),
    24,
  );
  return ["BEGIN:VCALENDAR", ...lines].join(dice.pick(["\r\n", "\n"]));
}

const PIECES = [
  ...[",", ";", "\t", '"', '""', "\r", "\n", "\r\n", "\uFEFF", "\0", "\x07", "\ud83d", "é", "١٢"],
  ...[
    "sep=;\n",
    "BEGIN:VCALENDAR\n",
    "12/12/2027",
    "PK\x03\x04",
    "{",
    "<html",
    ":",
    "a".repeat(300),
  ],
];

/** Inserts, cuts and doubles pieces; sometimes the bytes are not UTF-8. */
function broken(dice: Dice, text: string): Uint8Array {
  let mutated = text;
  for (let count = dice.roll(6); count >= 0; count -= 1) {
    const at = dice.roll(mutated.length + 1);
    const rest = mutated.slice(at + dice.roll(3) * dice.roll(20));
    const again = dice.roll(4) === 0 ? mutated.slice(at, at + dice.roll(40)) : "";
    mutated = mutated.slice(0, at) + again + dice.pick(PIECES) + rest;
  }
  const bytes = new TextEncoder().encode(mutated);
  if (dice.roll(4) === 0 && bytes.length > 0) bytes[dice.roll(bytes.length)] = dice.roll(256);
  return bytes;
}

/** Returns the file as read; `undefined` if the reader refuses it. */
function readOrRefuse(bytes: Uint8Array, hasHeading?: boolean): ImportFile | undefined {
  try {
    return readFile(bytes, hasHeading);
  } catch (error) {
    if (error instanceof UnreadableFile) return undefined;
    throw error;
  }
}

function countOf(file: ImportFile): number {
  return [...file.counted.values()].reduce((sum, count) => sum + count, file.rows.length);
}

test("what a grammar makes comes out as it went in, and open work stays open", () => {
  forSeeds(MINUTES / 2, (dice) => {
    const { text, wanted } = grammarFile(dice);
    const file = readFile(new TextEncoder().encode(text), true);
    const meanings = file.columns.map(({ meaning }) => meaning);
    const { items } = understand(file, { meanings, dayOrder: undefined, locale: "en" });
    const found = items.map(({ title, done }) => ({ title, done }));
    assert.deepEqual(found, wanted, JSON.stringify(text));
  });
});

test("whatever a file holds: it is read or refused, and rows in are rows out and counted", () => {
  const makers = [(dice: Dice) => grammarFile(dice).text, appFile, calendarFile];
  forSeeds(MINUTES / 2, (dice) => {
    const bytes = broken(dice, dice.pick(makers)(dice));
    const told = JSON.stringify(new TextDecoder("latin1").decode(bytes));
    const file = readOrRefuse(bytes, dice.pick([undefined, true, false]));
    if (file === undefined) return;
    if (file.app !== "iCalendar") {
      const text = new TextDecoder(file.encoding).decode(bytes);
      const records = parseCsv(text);
      assert.equal(countOf(file), records.length, told);
      assert.deepEqual(
        parseCsv(formatCsv(records.map(({ fields }) => fields))).map(({ fields }) => fields),
        records.map(({ fields }) => fields),
        told,
      );
    }
    const meanings = file.columns.map(({ meaning }): ColumnMeaning =>
      dice.roll(3) === 0 ? dice.pick(MEANINGS) : meaning,
    );
    const dayOrder = dice.pick([undefined, "dayFirst", "monthFirst"] as const);
    const { items, untitled } = understand(file, { meanings, dayOrder, locale: "en-GB" });
    assert.equal(items.length + untitled.length, file.rows.length, told);
    assert.ok(
      items.every(({ title }) => title.trim() !== ""),
      told,
    );
    assert.ok(
      items.every(({ due }) => due === null || /^\d{4}-\d\d-\d\d$/.test(due)),
      told,
    );
  });
});

const LANGUAGES = [
  "en-US",
  "en-GB",
  "de",
  "fr",
  "es",
  "it",
  "pt",
  "nl",
  "pl",
  "ru",
  "sv",
  "ja",
  "zh",
];

/** Writes a day in one of the ways that programs and people use. */
function written(dice: Dice, day: string): string {
  const [year = "", month = "", date = ""] = day.split("-");
  const time = new Date(day);
  const language = dice.pick(LANGUAGES);
  const form = { year: "numeric", day: "numeric", timeZone: "UTC" } as const;
  const months = { month: dice.pick(["long", "short"] as const), ...form };
  return dice.pick([
    day,
    `${year}${month}${date}`,
    `${year}/${Number(month)}/${Number(date)}`,
    `${Number(date)}.${Number(month)}.${year}`,
    `${Number(date)}.${month}.${year.slice(2)}`,
    `${day}T00:00:00${dice.pick(["", "Z", "+02:00", ".000Z"])}`,
    `${day} ${dice.pick(["17:30", "5 pm", "5:30 PM", "17:30:00 UTC"])}`,
    String(daysBetween("1899-12-30", day)),
    time.toLocaleDateString(language, months),
    time.toLocaleDateString(language, {
      weekday: dice.pick(["long", "short"] as const),
      ...months,
    }),
  ]);
}

test("a day that is written in any of many ways is read back", () => {
  forSeeds(MINUTES / 4, (dice) => {
    const day = addDays("1990-01-01", dice.roll(28_000));
    const text = written(dice, day);
    const locale = dice.pick(LANGUAGES);
    assert.equal(readDays([text], { locale }).days[0]?.day, day, `${text} (${locale})`);
  });
});

test("whatever stands in a column of dates: days of the calendar come out, or none", () => {
  const pieces = [
    ...["1", "12", "13", "31", "03", "27", "2027", "46458", "/", "-", ".", ",", " ", ":", "T", "Z"],
    ...[
      "March",
      "mar",
      "lundi",
      "of",
      "th",
      "am",
      "+02:00",
      "x",
      "٣",
      "月",
      "\u200f",
      "9".repeat(70),
    ],
  ];
  forSeeds(MINUTES / 4, (dice) => {
    const texts = dice.some(() => dice.some(() => dice.pick(pieces), 8).join(""), 6);
    const order = dice.pick([undefined, "dayFirst", "monthFirst"] as const);
    const { days } = readDays(texts, { locale: dice.pick(LANGUAGES), order });
    assert.equal(days.length, texts.length);
    for (const read of days) {
      if (read !== undefined) assert.equal(addDays(read.day, 0), read.day, JSON.stringify(texts));
    }
  });
});
