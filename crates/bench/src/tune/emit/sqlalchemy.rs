//! For Python's `SQLAlchemy`: a listener for each connection of the pool. An asynchronous engine has
//! it on its `sync_engine`.

use super::Recipe;

pub(super) fn write(recipe: &Recipe) -> String {
    let pragmas = recipe.lines(|name, value| format!("    \"PRAGMA {name} = {value}\","));
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
