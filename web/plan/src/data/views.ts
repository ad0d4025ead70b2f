/**
 * The content of a screen as SQL: the items of a list, of a smart view, or of a search.
 *
 * - A view shows open items, in its order, and then finished ones, the latest first.
 * - Only a window of a view is read, by indexes: a list may have many thousands of items.
 */
import type { SqlValue } from "@warren/client";
import type { Day } from "./dates.js";

export type PlanView =
  | { readonly kind: "list"; readonly id: string }
  | { readonly kind: "today" | "upcoming" | "all" | "none" }
  /** The keys of the items that were found (`search.ts`). */
  | { readonly kind: "search"; readonly keys: readonly number[] };

export interface SqlQuery {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

/** A part of a view: a filter, and an order. */
interface ViewSection {
  readonly where: string;
  readonly parameters: readonly SqlValue[];
  readonly order: string;
}

const LATEST = "done_ms DESC, id";
const NO_LIST = "list_id NOT IN (SELECT id FROM list)";

function openPart(view: PlanView, today: Day): ViewSection {
  switch (view.kind) {
    case "list":
      return { where: "list_id = ?", parameters: [view.id], order: "position, id" };
    case "today":
      return { where: "due <= ?", parameters: [today], order: "due, position, id" };
    case "upcoming":
      return { where: "due > ?", parameters: [today], order: "due, position, id" };
    case "all":
      return { where: "1", parameters: [], order: "created_ms DESC, position, id" };
    case "none":
      return { where: NO_LIST, parameters: [], order: "position, id" };
    case "search":
      return { ...found(view.keys), order: "created_ms DESC, position, id" };
  }
}

function donePart(view: PlanView, midnightMs: number): ViewSection {
  switch (view.kind) {
    case "list":
      return { where: "list_id = ?", parameters: [view.id], order: LATEST };
    case "today":
      return { where: "done_ms >= ?", parameters: [midnightMs], order: LATEST };
    case "upcoming":
      return { where: "0", parameters: [], order: LATEST };
    case "all":
      return { where: "1", parameters: [], order: LATEST };
    case "none":
      return { where: NO_LIST, parameters: [], order: LATEST };
    case "search":
      return { ...found(view.keys), order: LATEST };
  }
}

function found(keys: readonly number[]): Pick<ViewSection, "where" | "parameters"> {
  return {
    where: "rowid IN (SELECT value FROM json_each(?))",
    parameters: [JSON.stringify(keys)],
  };
}

/** The present day; it is an argument, because days change while a page is open. */
export interface CurrentDay {
  readonly today: Day;
  readonly midnightMs: number;
}

/** Returns one row: `open` and `done`, the numbers of items. */
export function countQuery(view: PlanView, now: CurrentDay): SqlQuery {
  const open = openPart(view, now.today);
  const done = donePart(view, now.midnightMs);
  return {
    sql: `SELECT
      (SELECT count(*) FROM item WHERE done_ms IS NULL AND ${open.where}) AS open,
      (SELECT count(*) FROM item WHERE done_ms IS NOT NULL AND ${done.where}) AS done`,
    parameters: [...open.parameters, ...done.parameters],
  };
}

export interface RowRange {
  readonly offset: number;
  readonly count: number;
}

/** Reads the items of a window: a range of the open ones, and a range of the finished ones. */
export function windowQuery(
  view: PlanView,
  now: CurrentDay,
  open: RowRange,
  done: RowRange,
): SqlQuery {
  const parts = [
    { part: openPart(view, now.today), is: "IS NULL", range: open },
    { part: donePart(view, now.midnightMs), is: "IS NOT NULL", range: done },
  ];
  const selects = parts.map(
    ({ part, is }) =>
      `SELECT * FROM (SELECT * FROM item WHERE done_ms ${is} AND ${part.where}
       ORDER BY ${part.order} LIMIT ? OFFSET ?)`,
  );
  return {
    sql: selects.join(" UNION ALL "),
    parameters: parts.flatMap(({ part, range }) => [...part.parameters, range.count, range.offset]),
  };
}

/** Returns one row: the number of open items in each smart view, and of all items in `none`. */
export function smartCountsQuery(now: CurrentDay): SqlQuery {
  const open = "FROM item WHERE done_ms IS NULL";
  return {
    sql: `SELECT
      (SELECT count(*) ${open} AND due <= ?) AS today,
      (SELECT count(*) ${open} AND due > ?) AS upcoming,
      (SELECT count(*) ${open}) AS "all",
      (SELECT count(*) FROM item WHERE ${NO_LIST}) AS none`,
    parameters: [now.today, now.today],
  };
}

/** Reads the lists in their order, each with its number of open items. */
export const LISTS_QUERY: SqlQuery = {
  sql: `SELECT list.*, coalesce(counted.open, 0) AS open FROM list
    LEFT JOIN (SELECT list_id, count(*) AS open FROM item WHERE done_ms IS NULL GROUP BY list_id)
      AS counted ON counted.list_id = list.id
    ORDER BY list.position, list.id`,
  parameters: [],
};

export function itemQuery(id: string): SqlQuery {
  return { sql: "SELECT * FROM item WHERE id = ?", parameters: [id] };
}

/** Returns the address of a view within this page. A search has none. */
export function viewToHash(view: PlanView): string {
  return view.kind === "list" ? `#/list/${encodeURIComponent(view.id)}` : `#/${view.kind}`;
}

export function viewFromHash(hash: string): PlanView | undefined {
  const [, kind = "", id = ""] = hash.split("/");
  if (kind === "list" && id !== "") return listView(id);
  if (kind === "today" || kind === "upcoming" || kind === "all" || kind === "none") return { kind };
  return undefined;
}

/** Decodes a list's id; `undefined` if the address was truncated or garbled. */
function listView(encoded: string): PlanView | undefined {
  try {
    return { kind: "list", id: decodeURIComponent(encoded) };
  } catch {
    return undefined;
  }
}

export function isSameView(one: PlanView, other: PlanView): boolean {
  if (one.kind === "list" && other.kind === "list") return one.id === other.id;
  return one.kind === other.kind;
}
