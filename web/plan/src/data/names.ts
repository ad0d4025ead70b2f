/**
 * Finds the names of rows, including deleted ones.
 */
import type { WarrenDatabase, SqlRow, SqlValue } from "@warren/client";

interface RowId {
  readonly table: string;
  readonly key: readonly SqlValue[];
}

export interface RowNames {
  /** Returns the row's name; `undefined` if it never had one. */
  get(row: RowId): string | undefined;
}

/** The column that holds the name, by table. */
const NAME_OF: Readonly<Record<string, string>> = { item: "title", list: "name" };

export async function namesOf(db: WarrenDatabase, rows: readonly RowId[]): Promise<RowNames> {
  const names = new Map<string, string>();
  const put = (table: string, id: SqlValue | undefined, row: SqlRow): void => {
    const name = row[NAME_OF[table] ?? ""];
    if (typeof name === "string" && name !== "") names.set(`${table} ${String(id)}`, name);
  };
  for (const [table, column] of Object.entries(NAME_OF)) {
    const ids = rows.filter((row) => row.table === table).map(({ key }) => key[0] ?? null);
    if (ids.length === 0) continue;
    for (const { key, cells } of await db.deletedRows(table)) put(table, key[0], cells);
    const sql = `SELECT id, ${column} FROM ${table} WHERE id IN (${ids.map(() => "?").join()})`;
    for (const row of (await db.query(sql, ids)).rows) put(table, row["id"], row);
  }
  return { get: ({ table, key }) => names.get(`${table} ${String(key[0])}`) };
}
