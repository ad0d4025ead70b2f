/**
 * Determines the kind of a statement from its first word.
 *
 * Invariant: a statement that counts as reading cannot write. If in doubt, a statement counts as
 * writing, which costs a transaction and is also correct.
 */

/**
 * The kind of a statement.
 *
 * - `reads`: changes nothing.
 * - `writes`: may change something; runs in a transaction.
 * - `bare`: SQLite refuses to run it in a transaction, or ignores it there.
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

/** Removes blanks, comments and semicolons from the beginning. */
function withoutComments(sql: string): string {
  return sql.replace(/^(?:[\s;]+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/, "");
}

function isOne(words: string): boolean {
  const end = words.indexOf(";");
  return end === -1 || withoutComments(words.slice(end)) === "";
}
