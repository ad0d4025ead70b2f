//! Writes settings for Django from 5.1 on, which introduced `init_command` and `transaction_mode`
//! for SQLite.
//!
//! Django sets `foreign_keys` itself; setting it again does no harm. With the transaction mode, a
//! transaction that will write waits for the lock when it begins, where waiting is possible.

use super::python;
use super::recipe::PragmaRecipe;

pub(super) fn write(recipe: &PragmaRecipe) -> String {
    let pragmas = recipe.lines("                ", line);
    format!(
        "# In settings.py, with Django 5.1 or later.
DATABASES = {{
    \"default\": {{
        \"ENGINE\": \"django.db.backends.sqlite3\",
        \"NAME\": \"app.db\",
        \"OPTIONS\": {{
            \"transaction_mode\": \"IMMEDIATE\",
            \"init_command\": (
{pragmas}            ),
        }},
    }}
}}
"
    )
}

pub(super) fn line(name: &str, value: &str) -> String {
    format!("\"PRAGMA {name} = {value};\"")
}

pub(super) fn check() -> String {
    python::check_with("django", "connection", "connection.cursor()")
}
