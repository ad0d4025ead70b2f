/**
 * What a screen shows, as SQL: the items of a list, of a smart view, or those found by a search.
 *
 * - A view is open items, in its order, and then finished ones, the latest first.
 * - Only a window of it is ever read, by indexes: a list may have many thousands of items.
 */
import type { SqlValue } from "@warren/client";
import type { Day } from "./dates.js";

export type PlanView =
  | { readonly kind: "list"; readonly id: string }
  | { readonly kind: "today" | "upcoming" | "all" | "none" }
  /** The keys of what was found (`search.ts`). */
  | { readonly kind: "search"; readonly keys: readonly number[] };

export interface SqlQuery {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

/** A part of a view: which items, and in which order. */
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

/** The moment that a view is for: days and midnights change while a page is open. */
export interface CurrentDay {
  readonly today: Day;
  readonly midnightMs: number;
}

/** One row: `open` and `done`, how many items there are. */
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

/** The items of a window: some of the open ones, and some of the finished ones. */
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

/** One row: how many open items each smart view has. */
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

/** The lists in their order, each with its number of open items. */
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

/** The address of a view in this page, and back. A search has none. */
export function viewToHash(view: PlanView): string {
  return view.kind === "list" ? `#/list/${encodeURIComponent(view.id)}` : `#/${view.kind}`;
}

export function viewFromHash(hash: string): PlanView | undefined {
  const [, kind = "", id = ""] = hash.split("/");
  if (kind === "list" && id !== "") return listView(id);
  if (kind === "today" || kind === "upcoming" || kind === "all" || kind === "none") return { kind };
  return undefined;
}

/** `undefined` for what is no address: somebody cut it, or a program spoilt it. */
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
