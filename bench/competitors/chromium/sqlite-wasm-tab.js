// Runs @sqlite.org/sqlite-wasm in a worker and calls it from a page, with the least code between
// the two.

export const driver = 'sqlite-wasm, from a tab';

export async function open(path) {
  const worker = new Worker('/sqlite-wasm-tab-worker.js', { type: 'module' });
  const waiting = new Map();
  let calls = 0;
  worker.onmessage = ({ data: { number, rows, error } }) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    if (error) reject(new Error(error));
    else resolve(rows);
  };
  const call = (message) => {
    const number = ++calls;
    worker.postMessage({ ...message, number });
    return new Promise((resolve, reject) => waiting.set(number, { resolve, reject }));
  };
  await call({ path });
  let last;
  return {
    async query(sql) {
      const rows = await call({ sql, values: [] });
      return rows.map((row) => Object.values(row)[0]);
    },
    prepare: (sql) => (values) => {
      last = call({ sql, values });
    },
    settled: () => last,
    close: () => worker.terminate(),
  };
}
