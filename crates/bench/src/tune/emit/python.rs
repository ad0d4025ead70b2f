//! Writes settings for Python's own `sqlite3`, and for modules that are called like it. Frameworks
//! on top of it print their settings with the same lines.

use super::check;
use super::recipe::PragmaRecipe;

pub(super) fn write(recipe: &PragmaRecipe) -> String {
    let pragmas = recipe.lines("    ", line);
    format!(
        "import sqlite3


def connect():
    db = sqlite3.connect(\"app.db\")
{pragmas}    return db
"
    )
}

pub(super) fn line(name: &str, value: &str) -> String {
    format!("db.execute(\"PRAGMA {name} = {value}\")")
}

pub(super) fn check() -> String {
    check_with("python", "db", "db.cursor()")
}

/// Returns the snippet for a framework; `argument` is its parameter, and `cursor` the expression
/// for a cursor.
pub(super) fn check_with(framework: &str, argument: &str, cursor: &str) -> String {
    let (pragmas, query) = (check::pragmas("        "), check::query("        "));
    format!(
        "import os


def print_settings({argument}):
    pragmas = \"\"\"{pragmas}\"\"\"
    cursor = {cursor}
    print(\"framework={framework}\")
    for name in pragmas.split():
        for (value,) in cursor.execute(\"PRAGMA \" + name).fetchall():
            print(f\"{{name}}={{value}}\")
    for (line,) in cursor.execute(\"\"\"{query}\"\"\").fetchall():
        print(line)
    for name in (\"SQLITE_TMPDIR\", \"TMPDIR\"):
        print(f\"{{name}}={{os.environ.get(name, '')}}\")
"
    )
}
