/**
 * What is in a file, before anybody decides what it means: columns, rows, and a count of whatever
 * is neither.
 *
 * Invariant: every record of the file is a row, or counted.
 */
import type { TextEncodingName } from "./decode.js";
import type { ImportColumn } from "./columns.js";

export interface TableRow {
  /** Of the file; the first one is 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** What records can be that are no items. */
export type RecordKind =
  /** The names of the columns. */
  | "heading"
  /** Nothing is in it. */
  | "blank"
  /** What a program says about the file, before its table or within it. */
  | "setting"
  /** Kept in the notes of the items that it is about. */
  | "section"
  | "comment"
  /** Left out: a comment that belongs to no item, an appointment in a calendar, and the like. */
  | "other";

export interface ImportTable {
  readonly columns: readonly ImportColumn[];
  readonly rows: readonly TableRow[];
  readonly counted: ReadonlyMap<RecordKind, number>;
}

export interface ImportFile extends ImportTable {
  /** The program that wrote it, where it can be told. */
  readonly app: string | undefined;
  readonly encoding: TextEncodingName;
  /** Whether the first record has the names of columns; `undefined` where there is no doubt. */
  readonly hasHeading: boolean | undefined;
}

/** Counts, to be filled. */
export class RecordCounts extends Map<RecordKind, number> {
  add(kind: RecordKind, count = 1): void {
    if (count > 0) this.set(kind, (this.get(kind) ?? 0) + count);
  }
}

export function isBlank(fields: readonly string[]): boolean {
  return fields.every((field) => field.trim() === "");
}
