/**
 * Brings the file to a tab's schema: migrations, each in a transaction, counted in
 * `PRAGMA user_version`; and tracks the tables.
 *
 * What was run is kept in `warren_migration`, a local table in the file: a text that was edited
 * since would be passed over, and its page would meet a database that it does not expect.
 */
import { WarrenError } from "../api.js";
import type { ReplicaFile } from "./file/replica-file.js";
import type { PrepareParams } from "../shared/rpc-methods.js";
import { unpack } from "../shared/packed-rows.js";

const TABLE = `CREATE TABLE IF NOT EXISTS warren_migration (
  number INTEGER PRIMARY KEY, sql TEXT NOT NULL
)`;
const NOTE = "INSERT INTO warren_migration (number, sql) VALUES (?, ?)";
/** What is shown of a text from where it was edited. */
const SHOWN_CHARS_MAX = 60;

/**
 * Does what is missing; a file with another key, or that knows more migrations than the tab, or
 * others, is refused.
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

/** Those that a file of an earlier version has run without a note are noted as they are. */
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

/** Comments and layout may change. */
function essence(sql: string): string {
  return sql.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ").replace(/\s+/g, " ").trim();
}

function edited(number: number, before: string, after: string): string {
  let same = 0;
  while (before[same] === after[same] && same < before.length) {
    same += 1;
  }
  // From the beginning of the word.
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
