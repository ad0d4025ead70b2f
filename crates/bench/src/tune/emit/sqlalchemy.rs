//! Writes settings for Python's SQLAlchemy: a listener for each connection of the pool. An
//! asynchronous engine has it on its `sync_engine`.

use super::python;
use super::recipe::PragmaRecipe;

pub(super) fn write(recipe: &PragmaRecipe) -> String {
    let pragmas = recipe.lines("    ", line);
    format!(
        "from sqlalchemy import create_engine, event

PRAGMAS = [
{pragmas}]

engine = create_engine(\"sqlite:///app.db\")


@event.listens_for(engine, \"connect\")
def set_pragmas(connection, record):
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(pragma)
    cursor.close()
"
    )
}

pub(super) fn line(name: &str, value: &str) -> String {
    format!("\"PRAGMA {name} = {value}\",")
}

pub(super) fn check() -> String {
    python::check_with("sqlalchemy", "engine", "engine.raw_connection().cursor()")
}
