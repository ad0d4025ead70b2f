/**
 * Words of dates and to-do lists in several languages, all of them folded.
 */
import { fold } from "../fold.js";

/** The locales whose names of months and weekdays are known, in addition to the user's own. */
const LOCALES = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "sv", "ja", "ko", "zh"];

export interface CalendarWords {
  /** The number of the month, 1 to 12, by its name or short name. */
  readonly months: ReadonlyMap<string, number>;
  readonly weekdays: ReadonlySet<string>;
}

const wordsByLocale = new Map<string, CalendarWords>();

export function calendarWords(locale: string): CalendarWords {
  const made = wordsByLocale.get(locale);
  if (made !== undefined) return made;
  const months = new Map<string, number>([["sept", 9]]);
  const weekdays = new Set<string>();
  for (const known of new Set([...LOCALES, locale])) {
    for (const length of ["long", "short"] as const) {
      const month = { month: length, timeZone: "UTC" } as const;
      // Formatted alone and with a day, because some languages decline the name.
      for (const options of [month, { ...month, day: "numeric" } as const]) {
        const formatter = new Intl.DateTimeFormat(known, options);
        for (let index = 0; index < 12; index += 1) {
          const [name] = partOf(formatter, "month", Date.UTC(1900, index, 15));
          if (name !== undefined && !/\p{N}/u.test(name)) months.set(name, index + 1);
        }
      }
      const formatter = new Intl.DateTimeFormat(known, { weekday: length, timeZone: "UTC" });
      // The first of January 1900 was a Monday.
      for (let day = 1; day <= 7; day += 1) {
        for (const word of partOf(formatter, "weekday", Date.UTC(1900, 0, day))) weekdays.add(word);
      }
    }
  }
  const words = { months, weekdays };
  wordsByLocale.set(locale, words);
  return words;
}

function partOf(
  formatter: Intl.DateTimeFormat,
  type: "month" | "weekday",
  time: number,
): readonly string[] {
  const parts = formatter.formatToParts(time).filter((part) => part.type === type);
  return parts.flatMap((part) => dateTokens(part.value));
}

/** Returns the words and the numbers of a date, folded. */
export function dateTokens(text: string): readonly string[] {
  // Chinese and Japanese have no space between the day and the day of the week.
  return (
    fold(text)
      .replace(/[年月日]/g, " $& ")
      .match(/\p{L}+|\p{N}+/gu) ?? []
  );
}

/** Words between the parts of a date: "12th of March", "12 de marzo", "2027年3月12日". */
export const DATE_FILLERS: ReadonlySet<string> = new Set(
  ["of", "the", "de", "del", "den", "der", "le", "el", "st", "nd", "rd", "th", "er"].concat(
    ["年", "月", "日", "년", "월", "일", "г", "roku"].map(fold),
  ),
);

/** Words for finished work, in a column that has one word for each item. */
export const DONE_WORDS: ReadonlySet<string> = new Set([
  ...["1", "100%", "check", "checked", "closed", "complete", "completed", "done", "finished"],
  ...["on", "resolved", "t", "true", "x", "[x]", "y", "yes", "✓", "✔", "☑", "✅"],
  ...["abgeschlossen", "abgehakt", "erledigt", "fertig", "ja", "wahr"],
  ...["fait", "faite", "oui", "termine", "terminee", "vrai"],
  ...["completada", "completado", "hecha", "hecho", "si", "terminada", "terminado", "verdadero"],
  ...["completata", "completato", "fatto", "vero", "concluida", "concluido", "feito", "sim"],
  ...["gereed", "klaar", "voltooid", "waar", "gotowe", "prawda", "tak", "zrobione", "klar"],
  ...["выполнено", "готово", "да", "истина", "сделано"].map(fold),
]);

/** Words that say only that an item is open, so that the note need not keep them. */
export const OPEN_WORDS: ReadonlySet<string> = new Set([
  ...["", "-", "0", "0%", "[ ]", "[]", "f", "false", "incomplete", "n", "needs action"],
  ...["needs-action", "no", "normal", "not done", "not started", "open", "pending", "to do"],
  ...["todo", "to-do", "unchecked", "☐", "falsch", "nein", "nicht begonnen", "offen", "faux"],
  ...["non", "falso", "nee", "onwaar", "nao", "nie", "нет", "ложь"].map(fold),
]);
