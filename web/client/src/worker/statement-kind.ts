/**
 * What kind a statement is, by its first word.
 *
 * Invariant: what is taken for reading only cannot write. In doubt a statement is taken for a
 * writing one, which costs a transaction and is right, too.
 */

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
