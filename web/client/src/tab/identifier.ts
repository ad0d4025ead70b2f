/** Names in SQL: what a parameter cannot be, and what is not to be put into the text unquoted. */
import { WarrenError, type Identifier } from "../api.js";

/** Of a class, so that nothing that came as JSON passes for one. */
class QuotedName implements Identifier {
  constructor(readonly quoted: string) {}
}

export const isIdentifier = (value: unknown): value is Identifier => value instanceof QuotedName;

/**
 * A name for a template: `` db.sql`SELECT * FROM item ORDER BY ${identifier(column)}` ``. It is
 * quoted, so it is one name whatever is in it; whether there is such a column, SQLite says.
 */
export function identifier(name: string): Identifier {
  if (typeof name !== "string" || name.includes("\0")) {
    throw new WarrenError("invalid_argument", `not a valid SQL identifier: ${String(name)}`);
  }
  return new QuotedName(`"${name.replaceAll('"', '""')}"`);
}
