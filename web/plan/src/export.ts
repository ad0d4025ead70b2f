/**
 * Exports all data of the database as a file among the browser's downloads. The file's name
 * contains the day.
 */
import type { WarrenDatabase } from "@warren/client";
import { exportCsv } from "./data/csv-transfer.js";
import { dayOf } from "./data/dates.js";
import { saveFile } from "./ui/files.js";

/** Saves the items as CSV that can be imported again. */
export async function saveCsv(db: WarrenDatabase): Promise<void> {
  saveFile(`plan-${dayOf(new Date())}.csv`, "text/csv", await exportCsv(db));
}

/** Saves the database as an SQLite file. */
export async function saveDatabase(db: WarrenDatabase): Promise<void> {
  const name = `plan-${dayOf(new Date())}.db`;
  saveFile(name, "application/vnd.sqlite3", await db.export());
}
