/**
 * The content of a file before its meaning is decided: columns, rows, and counts of all other
 * records.
 *
 * Invariant: every record of the file is a row, or counted.
 */
import type { TextEncodingName } from "./decode.js";
import type { ImportColumn } from "./columns.js";

export interface TableRow {
  /** The row's line in the file; the first line is 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** The kinds of records that are not items. */
export type RecordKind =
  /** The names of the columns. */
  | "heading"
  /** A record without content. */
  | "blank"
  /** A statement of a program about the file, before its table or within it. */
  | "setting"
  /** A record that is kept in the notes of the items that it is about. */
  | "section"
  | "comment"
  /**
   * A record that is left out: a comment on no item, an appointment in a calendar, and the like.
   */
  | "other";

export interface ImportTable {
  readonly columns: readonly ImportColumn[];
  readonly rows: readonly TableRow[];
  readonly counted: ReadonlyMap<RecordKind, number>;
}

export interface ImportFile extends ImportTable {
  /** The program that wrote the file, if it is known. */
  readonly app: string | undefined;
  readonly encoding: TextEncodingName;
  /** Whether the first record has the names of columns; `undefined` if there is no doubt. */
  readonly hasHeading: boolean | undefined;
}

/** A map of counts that starts empty. */
export class RecordCounts extends Map<RecordKind, number> {
  add(kind: RecordKind, count = 1): void {
    if (count > 0) this.set(kind, (this.get(kind) ?? 0) + count);
  }
}

export function isBlank(fields: readonly string[]): boolean {
  return fields.every((field) => field.trim() === "");
}
