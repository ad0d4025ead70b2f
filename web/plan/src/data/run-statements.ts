/**
 * Runs the statements of a step in one transaction: all of them, or none.
 */
import type { WarrenDatabase } from "@warren/client";
import type { BatchStatement } from "./undo.js";

export async function runStatements(
  db: WarrenDatabase,
  statements: readonly BatchStatement[],
): Promise<void> {
  const wanted = statements.filter((statement) => statement.rows.length > 0);
  if (wanted.length === 0) return;
  // Deleted rows then appear under "Recently deleted", even if they were never synced.
  if (wanted.some(({ sql }) => sql.startsWith("DELETE"))) await db.recordHistory();
  await db.transaction(async (tx) => {
    for (const statement of wanted) await tx.executeMany(statement.sql, statement.rows);
  });
}
