//! Writes settings for Node's better-sqlite3, and better-sqlite3-multiple-ciphers, which is called
//! in the same way.

use super::check;
use super::recipe::PragmaRecipe;

pub(super) fn write(recipe: &PragmaRecipe) -> String {
    let pragmas = recipe.lines("", line);
    format!(
        "const Database = require('better-sqlite3');

const db = new Database('app.db');
{pragmas}"
    )
}

pub(super) fn line(name: &str, value: &str) -> String {
    format!("db.pragma('{name} = {value}');")
}

pub(super) fn check() -> String {
    let (pragmas, query) = (check::pragmas("    "), check::query("    "));
    format!(
        "function printSettings(db) {{
  const names = `{pragmas}`;
  console.log('framework=better-sqlite3');
  for (const name of names.split(/\\s+/)) {{
    for (const row of db.pragma(name)) console.log(`${{name}}=${{Object.values(row)[0]}}`);
  }}
  const query = `{query}`;
  for (const [line] of db.prepare(query).raw().iterate()) console.log(line);
  for (const name of ['SQLITE_TMPDIR', 'TMPDIR']) {{
    console.log(`${{name}}=${{process.env[name] ?? ''}}`);
  }}
}}
"
    )
}
