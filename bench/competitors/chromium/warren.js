// Runs Warren's replica in a worker and calls it like the worker of `@warren/client` does: one
// call per query, rows as objects, and one call for the same statement with many lists of values.

import init, { openReplica } from '/warren/replica.js';
import { fetchFile } from './work.js';

export const driver = 'warren';

const NULL = 0;
const NUMBER = 1;
const TEXT = 2;
const BLOB = 3;

// Unpacks rows like `web/client/src/shared/packed-rows.ts`.
function objects(packed) {
  const { columns, kinds, numbers, integers, texts, textLengths, blobs, blobLengths } = packed;
  packed.free();
  const rows = [];
  let [number, integer, text, textAt, blob, blobAt] = [0, 0, 0, 0, 0, 0];
  for (let cell = 0; cell < kinds.length; ) {
    const row = {};
    for (const column of columns) {
      const kind = kinds[cell++];
      if (kind === NULL) row[column] = null;
      else if (kind === NUMBER) row[column] = numbers[number++];
      else if (kind === TEXT) {
        const from = textAt;
        textAt += textLengths[text++];
        row[column] = texts.slice(from, textAt);
      } else if (kind === BLOB) {
        const from = blobAt;
        blobAt += blobLengths[blob++];
        row[column] = blobs.slice(from, blobAt);
      } else row[column] = integers[integer++];
    }
    rows.push(row);
  }
  return rows;
}

export async function open(path) {
  const file = await fetchFile(path);
  await init({ module_or_path: '/warren/replica_bg.wasm' });
  const replica = await openReplica('bench', undefined, file === undefined);
  if (file !== undefined) replica.import(file);
  const run = (sql, values) => objects(replica.run(sql, values));
  // Writes of a transaction wait here for others of the same statement.
  let waiting;
  const flush = () => {
    if (waiting?.lists.length > 0) replica.runMany(waiting.sql, waiting.lists);
    waiting &&= { lists: [] };
  };
  const many = (sql, values) => {
    if (waiting.sql !== sql) {
      flush();
      waiting.sql = sql;
    }
    waiting.lists.push(values);
  };
  return {
    query: (sql) => run(sql, []).map((row) => Object.values(row)[0]),
    prepare(sql) {
      const isRead = /^\s*(SELECT|WITH|VALUES)\b/i.test(sql);
      return (values) => {
        if (waiting !== undefined && !isRead) return many(sql, values);
        flush();
        return run(sql, values);
      };
    },
    transaction(work) {
      return () => {
        run('BEGIN IMMEDIATE', []);
        waiting = { lists: [] };
        work();
        flush();
        waiting = undefined;
        run('COMMIT', []);
      };
    },
    close: () => replica.close(),
  };
}
