// Stands after the emitted snippet, which opens `db`: prints each PRAGMA that the command line names.
const found = {};
for (const pragma of process.argv.slice(2)) {
  found[pragma] = String(db.pragma(pragma, { simple: true }));
}
console.log(JSON.stringify([found]));
