// Prints each PRAGMA that the command line names. The test appends this file to the emitted
// snippet, which opens `db`.
const found = {};
for (const pragma of process.argv.slice(2)) {
  found[pragma] = String(db.pragma(pragma, { simple: true }));
}
console.log(JSON.stringify([found]));
