/**
 * Brings the file to a tab's schema: runs migrations, each in a transaction, counted in
 * `PRAGMA user_version`; then tracks the tables.
 *
 * The SQL of each migration that ran is kept in `warren_migration`, a local table in the file. A
 * migration that was edited since would otherwise be skipped, and its page would meet a database
 * that it does not expect.
 */
import { WarrenError } from "../api.js";
import type { ReplicaFile } from "./file/replica-file.js";
import type { PrepareParams } from "../shared/rpc-methods.js";
import { unpack } from "../shared/packed-rows.js";

const TABLE = `CREATE TABLE IF NOT EXISTS warren_migration (
  number INTEGER PRIMARY KEY, sql TEXT NOT NULL
)`;
const NOTE = "INSERT INTO warren_migration (number, sql) VALUES (?, ?)";
/** The length of the excerpts in the error, from the place where the text was edited. */
const SHOWN_CHARS_MAX = 60;

/**
 * Runs the missing migrations. Refuses a file that has another key, more migrations than the tab,
 * or different ones.
 */
export function migrateAndTrack(file: ReplicaFile, preparation: PrepareParams): void {
  const { schema, track, key } = preparation;
  if (!file.hasKey(key ?? undefined)) {
    throw new WarrenError("wrong_key", "wrong key for the database file");
  }
  const done = userVersion(file);
  if (done > schema.length) {
    const known = `the file is at migration ${done}, but this page has only ${schema.length}`;
    throw new WarrenError("schema_too_new", `${known}: reload the page`);
  }
  file.run(TABLE, []);
  checkUnedited(file, schema.slice(0, done));
  schema.slice(done).forEach((sql, at) => runMigration(file, sql, done + at + 1));
  if (track.length > 0) {
    file.track(track);
  }
}

function userVersion(file: ReplicaFile): number {
  return file.run("PRAGMA user_version", []).numbers[0] ?? 0;
}

/**
 * Throws if a migration was edited after it ran. Migrations that a file of an earlier version ran
 * without recording them are recorded with their present text.
 */
function checkUnedited(file: ReplicaFile, run: readonly string[]): void {
  const rows = unpack<SqlMigration>(file.run("SELECT number, sql FROM warren_migration", []));
  const noted = new Map(rows.map(({ number, sql }) => [number, sql]));
  run.forEach((sql, at) => {
    const before = noted.get(at + 1);
    if (before === undefined) {
      file.run(NOTE, [at + 1, sql]);
    } else if (essence(before) !== essence(sql)) {
      throw new WarrenError("schema_changed", edited(at + 1, essence(before), essence(sql)));
    }
  });
}

interface SqlMigration {
  readonly number: number;
  readonly sql: string;
}

/** Returns the SQL without comments and layout, which may change. */
function essence(sql: string): string {
  return sql.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ").replace(/\s+/g, " ").trim();
}

function edited(number: number, before: string, after: string): string {
  let same = 0;
  while (before[same] === after[same] && same < before.length) {
    same += 1;
  }
  // Start at the beginning of the word.
  const from = before.lastIndexOf(" ", same) + 1;
  const [was, is] = [before, after].map((sql) => sql.slice(from, from + SHOWN_CHARS_MAX));
  return `migration ${number} was edited after it ran on this database: restore it and append a `
    + `new migration, or erase the database. It was “${was}”, and is now “${is}”`;
}

function runMigration(file: ReplicaFile, sql: string, version: number): void {
  file.run("BEGIN IMMEDIATE", []);
  try {
    file.run(sql, []);
    file.run(NOTE, [version, sql]);
    file.run(`PRAGMA user_version = ${version}`, []);
    file.run("COMMIT", []);
  } catch (thrown) {
    if (file.inTransaction()) {
      file.run("ROLLBACK", []);
    }
    throw thrown;
  }
}
