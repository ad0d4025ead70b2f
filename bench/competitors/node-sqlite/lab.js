// The lab's driver of node:sqlite, which is part of Node from 22.5 on. The plan and the answer are
// Warren's Format 12.

import { drive } from '../node/plan.js';

async function open(path) {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(path);
  return {
    query: (sql) => db.prepare(sql).all().map((row) => Object.values(row)[0]),
    prepare(sql) {
      const statement = db.prepare(sql);
      if (statement.columns().length > 0) return (values) => statement.all(...values);
      return (values) => statement.run(...values);
    },
    transaction(work) {
      return () => {
        db.exec('BEGIN IMMEDIATE');
        work();
        db.exec('COMMIT');
      };
    },
    close: () => db.close(),
  };
}

await drive({ driver: 'node:sqlite', version: process.versions.node, open });
