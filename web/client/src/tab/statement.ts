/**
 * Statements as a page passes them: text and bound parameters.
 *
 * Invariant: every parameter is a value that SQLite has; anything else is refused at once.
 */
import { WarrenError, type SqlParameter, type SqlValue, type TemplateValue } from "../api.js";
import type { SqlStatement } from "../shared/rpc-methods.js";
import { joinTemplate } from "./sql-fragment.js";

/** Returns the statement of a template. */
export function fromTemplate(
  text: TemplateStringsArray,
  values: readonly TemplateValue[],
): SqlStatement {
  const { sql, parameters } = joinTemplate(text, values);
  return validateStatement(sql, parameters);
}

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
