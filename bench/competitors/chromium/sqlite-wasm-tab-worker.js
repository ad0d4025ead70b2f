// The worker of `sqlite-wasm-tab.js`: opens a file, and answers each statement with its rows.

import { open, prepare } from './sqlite-wasm.js';

let db;
const statements = new Map();

// A PRAGMA runs once, so it is not kept as a prepared statement, which could block other PRAGMAs.
function run(sql, values) {
  if (sql.startsWith('PRAGMA')) return db.selectObjects(sql);
  let statement = statements.get(sql);
  if (statement === undefined) {
    statement = prepare(db, sql);
    statements.set(sql, statement);
  }
  const rows = statement(values);
  return Array.isArray(rows) ? rows : [];
}

self.onmessage = async ({ data: { number, path, sql, values } }) => {
  try {
    if (path !== undefined) ({ db } = await open(path));
    const rows = sql === undefined ? [] : run(sql, values);
    self.postMessage({ number, rows });
  } catch (error) {
    self.postMessage({ number, error: String(error) });
  }
};
