/**
 * Brings the file to a tab's schema: migrations, each in a transaction, counted in
 * `PRAGMA user_version`; and tracks the tables.
 */
import type { OpenFile } from "./file.js";
import { failure } from "./errors.js";
import type { Preparation } from "./calls.js";

/** Does what is missing; a file that knows more migrations than the tab is refused. */
export function prepare(file: OpenFile, preparation: Preparation): void {
  const { schema, track } = preparation;
  const done = userVersion(file);
  if (done > schema.length) {
    const known = `${done} migrations were run on this file, and this page knows ${schema.length}`;
    throw failure("schema_too_new", `${known}: load the page anew`);
  }
  schema.slice(done).forEach((sql, at) => migrate(file, sql, done + at + 1));
  if (track.length > 0) {
    file.track(track);
  }
}

function userVersion(file: OpenFile): number {
  return file.run("PRAGMA user_version", []).numbers[0] ?? 0;
}

function migrate(file: OpenFile, sql: string, version: number): void {
  file.run("BEGIN IMMEDIATE", []);
  try {
    file.run(sql, []);
    file.run(`PRAGMA user_version = ${version}`, []);
    file.run("COMMIT", []);
  } catch (thrown) {
    if (file.inTransaction()) {
      file.run("ROLLBACK", []);
    }
    throw thrown;
  }
}
