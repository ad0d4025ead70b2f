// Runs @sqlite.org/sqlite-wasm in a worker, in its pool of OPFS files, as its documentation
// recommends: prepared statements are kept, and rows are objects.

import sqlite3InitModule from '/sqlite-wasm/index.mjs';
import { fetchFile } from './work.js';

export const driver = 'sqlite-wasm';

let sqlite3;
let pool;

async function openDatabase(file) {
  sqlite3 ??= await sqlite3InitModule();
  if (file === undefined) return new sqlite3.oo1.DB(':memory:');
  pool ??= await sqlite3.installOpfsSAHPoolVfs({ directory: '/sqlite-wasm' });
  await pool.importDb('/database', file);
  return new pool.OpfsSAHPoolDb('/database');
}

export function prepare(db, sql) {
  const statement = db.prepare(sql);
  const bind = (values) => (values.length > 0 ? statement.bind(values) : statement);
  if (statement.columnCount === 0) return (values) => bind(values).stepReset();
  return (values) => {
    bind(values);
    const rows = [];
    while (statement.step()) rows.push(statement.get({}));
    statement.reset();
    return rows;
  };
}

export async function open(path) {
  const db = await openDatabase(await fetchFile(path));
  return {
    query: (sql) => db.exec({ sql, returnValue: 'resultRows' }).map(([value]) => value),
    prepare: (sql) => prepare(db, sql),
    transaction(work) {
      return () => {
        db.exec('BEGIN IMMEDIATE');
        work();
        db.exec('COMMIT');
      };
    },
    close: () => db.close(),
    db,
  };
}
