/**
 * Parts of statements that are not values: names, which cannot be parameters, and pieces of SQL
 * with parameters of their own, such as the conditions of a filter.
 *
 * Invariant: a value that a page received, for example from JSON, never becomes SQL.
 */
import {
  WarrenError,
  type SqlFragment,
  type SqlParameter,
  type TemplateValue,
} from "../api.js";

/** A class, so that no value from JSON passes for a fragment. */
class Fragment implements SqlFragment {
  constructor(
    readonly sql: string,
    readonly parameters: readonly SqlParameter[],
  ) {}
}

/**
 * Makes a name for a template: `` db.sql`SELECT * FROM item ORDER BY ${identifier(column)}` ``.
 * The name is quoted, so it stays one name whatever characters it has; SQLite checks that it
 * exists.
 */
export function identifier(name: string): SqlFragment {
  if (typeof name !== "string" || name.includes("\0")) {
    throw new WarrenError("invalid_argument", `not a valid SQL identifier: ${String(name)}`);
  }
  return new Fragment(`"${name.replaceAll('"', '""')}"`, []);
}

/**
 * Makes a piece of SQL for a template, whose values become bound parameters of the statement:
 * `` const filter = isOpen ? fragment`WHERE done = ${false}` : fragment`` ``, then
 * `` db.sql`SELECT * FROM item ${filter}` ``.
 */
export function fragment(text: TemplateStringsArray, ...values: TemplateValue[]): SqlFragment {
  return joinTemplate(text, values);
}

/** Joins a template: each value becomes a parameter, each list a list of parameters. */
export function joinTemplate(
  text: TemplateStringsArray,
  values: readonly TemplateValue[],
): SqlFragment {
  // A call as a function would make a value of the page SQL.
  if (!Array.isArray(text) || !Array.isArray(text.raw)) {
    throw new WarrenError("invalid_argument", "write SQL as a template: sql`…`, not sql(…)");
  }
  const parameters: SqlParameter[] = [];
  const toSql = (value: TemplateValue): string => {
    if (value instanceof Fragment) {
      parameters.push(...value.parameters);
      return value.sql;
    }
    if (isList(value)) {
      parameters.push(...value);
      return `(${value.map(() => "?").join(", ")})`;
    }
    // An object that only looks like a fragment is refused as a parameter.
    parameters.push(value as SqlParameter);
    return "?";
  };
  const sql = values.map((value, at) => (text[at] ?? "") + toSql(value)).join("");
  return new Fragment(sql + (text[values.length] ?? ""), parameters);
}

const isList = (value: TemplateValue): value is readonly SqlParameter[] => Array.isArray(value);
