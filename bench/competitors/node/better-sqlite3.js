// Calls better-sqlite3 and the libraries derived from it for the lab: several packages and
// versions have the same interface.

export function open(Database, path) {
  const db = new Database(path);
  return {
    query(sql) {
      const statement = db.prepare(sql);
      if (statement.reader) return statement.pluck().all();
      statement.run();
      return [];
    },
    prepare(sql) {
      const statement = db.prepare(sql);
      if (statement.reader) return (values) => statement.all(values);
      return (values) => statement.run(values);
    },
    transaction: (work) => db.transaction(work).immediate,
    close: () => db.close(),
  };
}
