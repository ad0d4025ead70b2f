// How the lab calls better-sqlite3 and what is made from it: the same interface, several packages
// and versions.

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
