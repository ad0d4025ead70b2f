/**
 * Statements as a page passes them: text and bound parameters.
 *
 * Invariant: every parameter is a value that SQLite has; anything else is refused at once.
 */
import { WarrenError, type SqlParameter, type SqlValue, type TemplateValue } from "../api.js";
import type { SqlStatement } from "../shared/rpc-methods.js";
import { isIdentifier } from "./identifier.js";

/** Returns SQL from a template: each value becomes a bound parameter, each list a list of them. */
export function fromTemplate(
  text: readonly string[],
  values: readonly TemplateValue[],
): SqlStatement {
  const parameters: SqlParameter[] = [];
  const toSql = (value: TemplateValue): string => {
    if (isIdentifier(value)) {
      return value.quoted;
    }
    if (isList(value)) {
      parameters.push(...value);
      return `(${value.map(() => "?").join(", ")})`;
    }
    parameters.push(value);
    return "?";
  };
  const sql = values.map((value, at) => (text[at] ?? "") + toSql(value)).join("");
  return validateStatement(sql + (text[values.length] ?? ""), parameters);
}

const isList = (value: TemplateValue): value is readonly SqlParameter[] => Array.isArray(value);

/** Refuses values that SQLite does not have; TypeScript does not catch all of them. */
export function validateStatement(sql: string, given: readonly SqlParameter[]): SqlStatement {
  const parameters = given.map((value) => (value instanceof Date ? toText(value) : value));
  parameters.forEach((value: unknown, at) => {
    if (!isSqlValue(value)) {
      const what = value === undefined ? "undefined" : `a ${typeof value}`;
      const rather = value === undefined ? ": use null for NULL" : "";
      throw new WarrenError("invalid_argument", `parameter ${at + 1} is ${what}${rather} (${sql})`);
    }
  });
  return { sql, parameters };
}

/**
 * Returns the text that SQLite's own date functions accept and compare; an invalid date stays
 * unchanged, so that it is refused.
 */
function toText(date: Date): SqlValue {
  return Number.isNaN(date.getTime()) ? (date as unknown as SqlValue) : date.toISOString();
}

function isSqlValue(value: unknown): value is SqlValue {
  switch (typeof value) {
    case "number":
    case "bigint":
    case "string":
    case "boolean":
      return true;
    case "object":
      return value === null || value instanceof Uint8Array;
    default:
      return false;
  }
}
