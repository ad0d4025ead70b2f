/**
 * Finds the meaning of a table's columns from their names.
 *
 * Content that has no place of its own in Plan is kept in the item's note (`detail`); only the
 * other program's bookkeeping is left out.
 */
import { fold } from "../fold.js";

/** The meanings of columns. Several columns can be `note`, `done`, `detail` or `none`. */
export const MEANINGS = ["title", "note", "due", "list", "done", "detail", "none"] as const;
export type ColumnMeaning = (typeof MEANINGS)[number];

/** The meanings that only one column can have. */
const SINGLE: ReadonlySet<ColumnMeaning> = new Set(["title", "due", "list"]);

export interface ImportColumn {
  readonly name: string;
  /** The column's meaning until the user changes it. */
  readonly meaning: ColumnMeaning;
}

/** The order of columns without names, which is also that of Plan's own export. */
export const OWN_COLUMNS: readonly ColumnMeaning[] = ["title", "note", "due", "list", "done"];

const NAMES: Readonly<Record<Exclude<ColumnMeaning, "detail">, readonly string[]>> = {
  title: [
    ...["title", "task", "task name", "name", "content", "subject", "summary", "item", "to do"],
    ...["todo", "what", "task title", "aufgabe", "titel", "betreff", "tache", "titre", "tarea"],
    ...["titulo", "attivita", "titolo", "tarefa", "taak", "onderwerp", "задача", "название"],
  ],
  note: [
    ...["note", "notes", "description", "details", "comment", "comments", "body", "text"],
    ...["notiz", "notizen", "beschreibung", "bemerkung", "remarque", "notas", "descripcion"],
    ...["descricao", "descrizione", "omschrijving", "notities", "заметка", "описание"],
  ],
  due: [
    ...["due", "due date", "date", "due on", "due at", "deadline", "due by", "when", "end date"],
    ...["fallig", "fallig am", "faelligkeit", "falligkeitsdatum", "datum", "termin", "echeance"],
    ...["fecha", "vencimiento", "fecha de vencimiento", "scadenza", "data", "prazo", "vence"],
    ...["vervaldatum", "einddatum", "срок", "дата"],
  ],
  list: [
    ...["list", "list name", "project", "projects", "project name", "folder", "category", "board"],
    ...["liste", "projekt", "projet", "lista", "proyecto", "progetto", "projeto", "lijst"],
    ...["список", "проект"],
  ],
  done: [
    ...["done", "completed", "complete", "status", "state", "finished", "checked", "is done"],
    ...["is completed", "completed at", "completed on", "completed date", "completed time"],
    ...["completion date", "date completed", "date done", "done at", "finished at", "closed at"],
    ...["erledigt", "abgeschlossen", "fertig", "statut", "termine", "fait", "estado", "hecho"],
    ...["completada", "completado", "stato", "completato", "concluido", "feito", "voltooid"],
    ...["gereed", "статус", "выполнено"],
  ],
  none: [
    ...["id", "uid", "uuid", "guid", "task id", "taskid", "parent id", "parentid", "order"],
    ...["created", "created at", "created on", "created time", "created date", "date created"],
    ...["updated", "updated at", "modified", "modified at", "last modified", "creation date"],
    ...["position", "row", "no", "#", "created by", "author"],
  ],
};

const meaningsByName: ReadonlyMap<string, ColumnMeaning> = new Map(
  (Object.keys(NAMES) as (keyof typeof NAMES)[]).flatMap((meaning) =>
    NAMES[meaning].map((name) => [nameKey(name), meaning] as const),
  ),
);

/** Returns a column's name in the form for comparison: "Due_Date" and "due date" are equal. */
export function nameKey(name: string): string {
  return fold(name)
    .replace(/[\s_\-./]+/g, " ")
    .trim();
}

export function meaningOfName(name: string): ColumnMeaning | undefined {
  return meaningsByName.get(nameKey(name));
}

/** Whether a record holds the names of columns: one means the title, or two are known names. */
export function isHeading(fields: readonly string[]): boolean {
  const meanings = fields.map(meaningOfName);
  return meanings.includes("title") || meanings.filter((meaning) => meaning).length > 1;
}

/**
 * Returns the columns for these names, with the fewest changes that give one title and no
 * duplicates.
 */
export function columnsOf(
  names: readonly string[],
  meaningOf: (name: string) => ColumnMeaning | undefined = meaningOfName,
): ImportColumn[] {
  const taken = new Set<ColumnMeaning>();
  const columns = names.map((name, index): ImportColumn => {
    const known = meaningOf(name) ?? "detail";
    const isTaken = SINGLE.has(known) && taken.has(known);
    taken.add(known);
    return { name: shownName(name.trim(), index), meaning: isTaken ? "detail" : known };
  });
  if (taken.has("title")) return columns;
  const first = columns.findIndex(({ meaning }) => meaning === "detail");
  return columns.map((column, index) =>
    index === Math.max(0, first) ? { ...column, meaning: "title" } : column,
  );
}

/** Returns the name to show in notes: "DATE_LANG" becomes "Date lang", and "ID" stays. */
function shownName(name: string, index: number): string {
  if (name === "") return `Column ${index + 1}`;
  if (!/^[A-Z_ ]{4,}$/.test(name)) return name;
  return `${name.slice(0, 1)}${name.slice(1).toLowerCase().replaceAll("_", " ")}`;
}

/** Gives a column another meaning; a column that loses its meaning to it is kept in the note. */
export function withMeaning(
  meanings: readonly ColumnMeaning[],
  index: number,
  meaning: ColumnMeaning,
): ColumnMeaning[] {
  return meanings.map((before, at) => {
    if (at === index) return meaning;
    return before === meaning && SINGLE.has(meaning) ? "detail" : before;
  });
}
