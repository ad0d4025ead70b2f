//! For Node's better-sqlite3, and better-sqlite3-multiple-ciphers, which is called alike.

use super::Recipe;

pub(super) fn write(recipe: &Recipe) -> String {
    let pragmas = recipe.lines(|name, value| format!("db.pragma('{name} = {value}');"));
    format!(
        "const Database = require('better-sqlite3');

const db = new Database('app.db');
{pragmas}"
    )
}
