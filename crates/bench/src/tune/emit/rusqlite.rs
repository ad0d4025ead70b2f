//! For Rust's rusqlite; the text is as rustfmt has it.

use super::Recipe;
use crate::figures::whole;

pub(super) fn write(recipe: &Recipe) -> String {
    let pragmas = recipe.lines(|name, value| {
        let value = match value.parse::<i64>() {
            Ok(number) => whole(number).replace(',', "_"),
            Err(_) => format!("\"{}\"", value.trim_matches('\'')),
        };
        format!("    db.pragma_update(None, \"{name}\", {value})?;")
    });
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
