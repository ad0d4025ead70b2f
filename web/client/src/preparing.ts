/**
 * Brings the file to a tab's schema: migrations, each in a transaction, counted in
 * `PRAGMA user_version`; and tracks the tables.
 */
import type { Replica } from "./engine.js";
import { failure } from "./errors.js";
import type { Preparation } from "./calls.js";

/** Does what is missing; a file that knows more migrations than the tab is refused. */
export function prepare(replica: Replica, preparation: Preparation): void {
  const { schema, track } = preparation;
  const done = userVersion(replica);
  if (done > schema.length) {
    const known = `${done} migrations were run on this file, and this page knows ${schema.length}`;
    throw failure("schema_too_new", `${known}: load the page anew`);
  }
  schema.slice(done).forEach((sql, at) => migrate(replica, sql, done + at + 1));
  if (track.length > 0) {
    replica.track(track);
  }
}

function userVersion(replica: Replica): number {
  return replica.run("PRAGMA user_version", []).numbers[0] ?? 0;
}

function migrate(replica: Replica, sql: string, version: number): void {
  replica.run("BEGIN IMMEDIATE", []);
  try {
    replica.run(sql, []);
    replica.run(`PRAGMA user_version = ${version}`, []);
    replica.run("COMMIT", []);
  } catch (thrown) {
    if (replica.inTransaction()) {
      replica.run("ROLLBACK", []);
    }
    throw thrown;
  }
}
