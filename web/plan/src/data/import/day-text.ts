/**
 * Reads days as people and spreadsheets write them.
 *
 * - Which part of `03/04/2027` is the month is decided once for a whole column: one day above 12
 *   settles it; otherwise the order is a guess, and reported as one.
 * - A text that is not certainly a day is not read as one. Nothing is invented: no missing year,
 *   no "tomorrow".
 * - Formats: `2027-03-12` (also with `/` or `.`, with a time after it, or as `20270312`),
 *   `12.03.2027`, `12/3/27`, `12 March 2027`, `Fri, Mar 12th, 2027`, and Excel's serial numbers.
 */
import { addDays, dayFrom, type Day } from "../dates.js";
import { fold } from "../fold.js";
import { calendarWords, DATE_FILLERS, dateTokens } from "./words.js";

export type DayOrder = "dayFirst" | "monthFirst";

export interface DayCell {
  readonly day: Day;
  /** Whether the text also has a time of day, other than midnight. */
  readonly hasTime: boolean;
}

export interface DayColumn {
  /** The days by row; `undefined` for an empty text or one that is not a day. */
  readonly days: readonly (DayCell | undefined)[];
  readonly order: DayOrder;
  /**
   * A text that is a different day in the other order, if nothing in the column settles the order.
   */
  readonly doubtful: string | undefined;
}

export interface DayOptions {
  /** The user's locale: for names of months, and for the order if nothing else settles it. */
  readonly locale: string;
  /** The order that the user chose. */
  readonly order?: DayOrder | undefined;
}

export function readDays(texts: readonly string[], options: DayOptions): DayColumn {
  const readings = texts.map((text) => readText(text, options.locale));
  let dayFirst = 0;
  let monthFirst = 0;
  let doubtful: string | undefined;
  readings.forEach((reading, index) => {
    if (reading?.kind !== "slashed") return;
    const { first, second } = reading;
    if (first > 12) dayFirst += 1;
    else if (second > 12) monthFirst += 1;
    else if (first !== second) doubtful ??= texts[index]?.trim();
  });
  const isSettled = dayFirst > 0 !== monthFirst > 0;
  const found = dayFirst > monthFirst ? "dayFirst" : "monthFirst";
  const guess = dayFirst === monthFirst ? orderOf(options.locale) : found;
  const order = isSettled ? found : (options.order ?? guess);
  return {
    days: readings.map((reading) => reading && settle(reading, order)),
    order,
    doubtful: isSettled ? undefined : doubtful,
  };
}

/** Returns the order in which this locale writes days and months. */
export function orderOf(locale: string): DayOrder {
  const parts = new Intl.DateTimeFormat(locale).formatToParts(0).map(({ type }) => type);
  return parts.indexOf("day") < parts.indexOf("month") ? "dayFirst" : "monthFirst";
}

type DateReading =
  | ({ readonly kind: "day" } & DayCell)
  | {
      readonly kind: "slashed";
      readonly first: number;
      readonly second: number;
      readonly year: number;
      readonly hasTime: boolean;
    };

function settle(reading: DateReading, order: DayOrder): DayCell | undefined {
  const { hasTime } = reading;
  if (reading.kind === "day") return { day: reading.day, hasTime };
  const { first, second, year } = reading;
  const day = order === "dayFirst" ? dayFrom(year, second, first) : dayFrom(year, first, second);
  return day === undefined ? undefined : { day, hasTime };
}

/** The maximum length of a date; longer texts are sentences. */
const LENGTH_MAX = 60;

/** Matches a time of day with its usual context: "T10:00:00Z", " at 9 pm", "10:00 +0200". */
const TIME = new RegExp(
  String.raw`(?:^|[T,\s])\s*(?:at\s+|um\s+)?` +
    String.raw`(\d{1,2}(?::\d{2}){1,2}(?:[.,]\d+)?\s*(?:[ap]\.?m\.?)?|\d{1,2}\s*[ap]\.?m\.?)` +
    String.raw`\s*(?:z|utc|gmt)?\s*(?:[+-]\d{2}:?\d{2})?$`,
  "i",
);
const MIDNIGHT = /^(0?0(:00)+([.,]0+)?|12(:00)*\s*a\.?m\.?)$/i;

function readText(text: string, locale: string): DateReading | undefined {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed.length > LENGTH_MAX) return undefined;
  const compact = readCompact(trimmed);
  if (compact !== undefined) return compact;
  const time = TIME.exec(trimmed);
  const date = time === null ? trimmed : trimmed.slice(0, time.index);
  const hasTime = time !== null && !MIDNIGHT.test((time[1] ?? "").trim());
  const asDay = (day: Day | undefined): DateReading | undefined =>
    day === undefined ? undefined : { kind: "day", day, hasTime };
  const named = partsOf(date, locale);
  if (named === undefined) return undefined;
  const { numbers, month, isDotted } = named;
  const [first, second, third] = numbers;
  if (first === undefined || second === undefined) return undefined;
  if (month !== undefined) {
    if (third !== undefined) return undefined;
    const isYearFirst = first.length === 4;
    const [day, year] = isYearFirst ? [second, first] : [first, second];
    return asDay(fromParts(year, month, day));
  }
  if (third === undefined || numbers.length > 3) return undefined;
  if (first.length === 4) return asDay(fromParts(first, Number(second), third));
  if (isDotted) return asDay(fromParts(third, Number(second), first));
  const year = yearOf(third);
  if (year === undefined || first.length > 2 || second.length > 2) return undefined;
  return { kind: "slashed", first: Number(first), second: Number(second), year, hasTime };
}

/** The day from which a spreadsheet counts days. */
const SERIAL_ZERO = "1899-12-30";
const SERIAL_MIN = 20_000;
const SERIAL_MAX = 80_000;

/** Reads a day that has nothing between its numbers: ISO 8601, iCalendar, or a serial number. */
function readCompact(text: string): DateReading | undefined {
  const basic = /^(\d{4})(\d{2})(\d{2})(?:T(\d{4,6})Z?)?$/.exec(text);
  if (basic) {
    const day = dayFrom(Number(basic[1]), Number(basic[2]), Number(basic[3]));
    if (day === undefined) return undefined;
    return { kind: "day", day, hasTime: Number(basic[4] ?? 0) !== 0 };
  }
  const serial = /^(\d{5})(?:[.,](\d+))?$/.exec(text);
  if (!serial) return undefined;
  const count = Number(serial[1]);
  if (count < SERIAL_MIN || count > SERIAL_MAX) return undefined;
  return { kind: "day", day: addDays(SERIAL_ZERO, count), hasTime: Number(serial[2] ?? 0) !== 0 };
}

interface DateParts {
  /** The numbers in the order of the text, as written: "03" is not a year, "2003" not a day. */
  readonly numbers: readonly string[];
  readonly month: number | undefined;
  readonly isDotted: boolean;
}

/** Splits a date into parts; `undefined` if it has a word that does not belong in a date. */
function partsOf(text: string, locale: string): DateParts | undefined {
  const folded = fold(text);
  if (/[^\p{L}\p{N}\s.,/()\-'’]/u.test(folded)) return undefined;
  const { months, weekdays } = calendarWords(locale);
  const numbers: string[] = [];
  const named: string[] = [];
  for (const token of dateTokens(text)) {
    if (/^\d+$/.test(token)) numbers.push(token);
    else if (months.has(token)) named.push(token);
    else if (!weekdays.has(token) && !DATE_FILLERS.has(token)) return undefined;
  }
  // "mar. 12 mai" is a Tuesday: its short name is also the short name of a month.
  if (named.length === 2 && weekdays.has(named[0] ?? "")) named.shift();
  if (named.length > 1) return undefined;
  const month = months.get(named[0] ?? "");
  return { numbers, month, isDotted: /^\s*\p{L}*[.,]?\s*\d+\s*\./u.test(folded) };
}

function fromParts(year: string, month: number, day: string): Day | undefined {
  const full = yearOf(year);
  if (full === undefined || day.length > 2) return undefined;
  return dayFrom(full, month, Number(day));
}

/** Returns the year; two digits mean a year from 1970 to 2069. */
function yearOf(digits: string): number | undefined {
  if (digits.length === 4) return Number(digits);
  if (digits.length !== 2) return undefined;
  const short = Number(digits);
  return short < 70 ? 2000 + short : 1900 + short;
}
