/**
 * Days as `YYYY-MM-DD`, the form in the database: no time, no zone, sorted as texts.
 *
 * Nothing here reads the clock; "today" is an argument. Reading dates that people wrote →
 * `import/day-text.ts`.
 */

export type Day = string;

/** Returns the day in this device's time zone. */
export function dayOf(time: Date): Day {
  return format(time.getFullYear(), time.getMonth() + 1, time.getDate());
}

export function addDays(day: Day, count: number): Day {
  return dayAt(timeOf(day) + count * DAY_MS);
}

/** Returns the number of days from `from` to `to`; negative if `to` is earlier. */
export function daysBetween(from: Day, to: Day): number {
  return Math.round((timeOf(to) - timeOf(from)) / DAY_MS);
}

/** Returns the next Monday; on a Monday, that of the next week. */
export function nextMonday(today: Day): Day {
  const weekday = new Date(timeOf(today)).getUTCDay();
  return addDays(today, weekday === 0 ? 1 : 8 - weekday);
}

/** Describes a day: "Today", "Tomorrow", "Yesterday", "Friday", "12 March", "12 March 2027". */
export function describeDay(day: Day, today: Day, locale = "en"): string {
  const away = daysBetween(today, day);
  if (away === 0) return "Today";
  if (away === 1) return "Tomorrow";
  if (away === -1) return "Yesterday";
  const isThisYear = day.slice(0, 4) === today.slice(0, 4);
  const form = away > 1 && away < 7 ? "weekday" : isThisYear ? "day" : "dayOfYear";
  return formatter(form, locale).format(timeOf(day));
}

const FORMS = {
  weekday: { weekday: "long" },
  day: { day: "numeric", month: "short" },
  dayOfYear: { day: "numeric", month: "short", year: "numeric" },
} as const;

const formatters = new Map<string, Intl.DateTimeFormat>();

/** Returns a cached formatter: creating one takes longer than drawing a row of the list. */
function formatter(form: keyof typeof FORMS, locale: string): Intl.DateTimeFormat {
  const key = `${form} ${locale}`;
  const made = formatters.get(key);
  if (made !== undefined) return made;
  const added = new Intl.DateTimeFormat(locale, { timeZone: "UTC", ...FORMS[form] });
  formatters.set(key, added);
  return added;
}

/** Describes the time since then: "just now", "5 min ago", "3 h ago", "2 days ago". */
export function describeAgo(timeMs: number, nowMs: number): string {
  const minutes = Math.floor((nowMs - timeMs) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  const days = Math.floor(minutes / (24 * 60));
  return days === 1 ? "yesterday" : `${days} days ago`;
}

/** Returns the day, or `undefined` if it does not exist: 31 February is not 3 March. */
export function dayFrom(year: number, month: number, day: number): Day | undefined {
  const wanted = format(year, month, day);
  return wanted === dayAt(timeOf(wanted)) ? wanted : undefined;
}

/** Returns noon of this day in this device's time zone. */
export function noonOf(day: Day): Date {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date, 12);
}

const DAY_MS = 86_400_000;

function timeOf(day: Day): number {
  return Date.UTC(Number(day.slice(0, 4)), Number(day.slice(5, 7)) - 1, Number(day.slice(8, 10)));
}

function dayAt(time: number): Day {
  const date = new Date(time);
  return format(date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate());
}

function format(year: number, month: number, day: number): Day {
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}`;
}
