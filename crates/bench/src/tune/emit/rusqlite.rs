//! Writes settings for Rust's rusqlite, formatted like rustfmt.

use super::check;
use super::recipe::PragmaRecipe;
use crate::format::whole;

pub(super) fn write(recipe: &PragmaRecipe) -> String {
    let pragmas = recipe.lines("    ", line);
    format!(
        "use std::path::Path;

use rusqlite::{{Connection, Result}};

pub fn open(path: &Path) -> Result<Connection> {{
    let db = Connection::open(path)?;
{pragmas}    Ok(db)
}}
"
    )
}

pub(super) fn line(name: &str, value: &str) -> String {
    let value = match value.parse::<i64>() {
        Ok(number) => whole(number).replace(',', "_"),
        Err(_) => format!("\"{}\"", value.trim_matches('\'')),
    };
    format!("db.pragma_update(None, \"{name}\", {value})?;")
}

pub(super) fn check() -> String {
    let (pragmas, query) = (check::pragmas("        "), check::query("        "));
    format!(
        "pub fn print_settings(db: &rusqlite::Connection) -> rusqlite::Result<()> {{
    let names = \"{pragmas}\";
    let query = \"{query}\";
    let print = |name: &str, row: &rusqlite::Row<'_>| {{
        let value = row.get_ref(0)?;
        let text = value.as_str().map(str::to_owned);
        let text = text.or_else(|_| value.as_i64().map(|number| number.to_string()));
        println!(\"{{name}}{{}}\", text.unwrap_or_default());
        Ok(())
    }};
    for name in names.split_whitespace() {{
        db.pragma_query(None, name, |row| print(&format!(\"{{name}}=\"), row))?;
    }}
    db.prepare(query)?.query_map([], |row| print(\"\", row))?.collect::<Result<(), _>>()?;
    let env = [\"SQLITE_TMPDIR\", \"TMPDIR\"].map(std::env::var).map(Result::unwrap_or_default);
    println!(\"framework=rusqlite\\nSQLITE_TMPDIR={{}}\\nTMPDIR={{}}\", env[0], env[1]);
    Ok(())
}}
"
    )
}
