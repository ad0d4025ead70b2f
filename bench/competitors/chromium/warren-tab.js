// Calls `@warren/client` from a page.

import { open as openClient } from '/warren/index.js';
import { fetchFile } from './work.js';

export const driver = 'warren, from a tab';

export async function open(path) {
  const file = await fetchFile(path);
  const name = file === undefined ? 'about' : 'bench';
  const db = await openClient({ name, schema: [], autoSync: false });
  if (file !== undefined) await db.import(file);
  let last;
  return {
    async query(sql) {
      const { rows } = await db.query(sql);
      return rows.map((row) => Object.values(row)[0]);
    },
    prepare: (sql) => (values) => {
      last = db.query(sql, values);
    },
    settled: () => last,
    close: () => db.close(),
  };
}
