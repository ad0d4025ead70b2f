/** Names in SQL, which cannot be parameters and must not be put into the text unquoted. */
import { WarrenError, type Identifier } from "../api.js";

/** A class, so that no value from JSON passes for an identifier. */
class QuotedName implements Identifier {
  constructor(readonly quoted: string) {}
}

export const isIdentifier = (value: unknown): value is Identifier => value instanceof QuotedName;

/**
 * Makes a name for a template: `` db.sql`SELECT * FROM item ORDER BY ${identifier(column)}` ``.
 * The name is quoted, so it stays one name whatever characters it has; SQLite checks that it
 * exists.
 */
export function identifier(name: string): Identifier {
  if (typeof name !== "string" || name.includes("\0")) {
    throw new WarrenError("invalid_argument", `not a valid SQL identifier: ${String(name)}`);
  }
  return new QuotedName(`"${name.replaceAll('"', '""')}"`);
}
