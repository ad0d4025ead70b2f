/**
 * A statement as it is called: text and bound parameters; and what kind it is, by its first word.
 *
 * Invariant: what is taken for reading only cannot write. In doubt a statement is taken for a
 * writing one, which costs a transaction and is right, too.
 */
import type { SqlParameter, SqlValue, TemplateValue } from "./api.js";
import { clientError } from "./errors.js";
import { isIdentifier } from "./identifier.js";

export interface SqlStatement {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

/** SQL from a template: each value becomes a bound parameter, a list a list of them. */
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

/** Refuses what SQLite has no value for; TypeScript does not see everything. */
export function validateStatement(sql: string, given: readonly SqlParameter[]): SqlStatement {
  const parameters = given.map((value) => (value instanceof Date ? toText(value) : value));
  parameters.forEach((value: unknown, at) => {
    if (!isSqlValue(value)) {
      const what = value === undefined ? "undefined" : `a ${typeof value}`;
      const rather = value === undefined ? ": use null for NULL" : "";
      throw clientError("invalid_argument", `parameter ${at + 1} is ${what}${rather} (${sql})`);
    }
  });
  return { sql, parameters };
}

/** As SQLite's own functions take and compare it; one that is no date stays, and is refused. */
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

/**
 * - `reads`: changes nothing.
 * - `writes`: may change something; runs in a transaction.
 * - `bare`: SQLite does not run it in a transaction, or does nothing there.
 * - `controls`: would begin or end a transaction.
 * - `savepoint`: the part of transaction control that is allowed in a transaction.
 */
export type StatementKind = "reads" | "writes" | "bare" | "controls" | "savepoint";

export function statementKind(sql: string): StatementKind {
  const words = withoutComments(sql);
  const first = /^[a-z]+/i.exec(words)?.[0].toUpperCase();
  switch (first) {
    case "SELECT":
    case "VALUES":
    case "EXPLAIN":
      return isOne(words) ? "reads" : "writes";
    case "PRAGMA":
    case "VACUUM":
    case "ATTACH":
    case "DETACH":
      return "bare";
    case "BEGIN":
    case "COMMIT":
    case "END":
      return "controls";
    case "ROLLBACK":
      return /^ROLLBACK\s+(TRANSACTION\s+)?TO\b/i.test(words) ? "savepoint" : "controls";
    case "SAVEPOINT":
    case "RELEASE":
      return "savepoint";
    default:
      return "writes";
  }
}

/** Without blanks, comments and semicolons at the beginning. */
function withoutComments(sql: string): string {
  return sql.replace(/^(?:[\s;]+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/, "");
}

function isOne(words: string): boolean {
  const end = words.indexOf(";");
  return end === -1 || withoutComments(words.slice(end)) === "";
}
