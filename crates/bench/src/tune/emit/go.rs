//! For Go's `database/sql` with modernc.org/sqlite, whose data source name carries PRAGMAs to each
//! connection of the pool: one that is executed reaches a single connection, and is lost with it.

use super::Recipe;

pub(super) fn write(recipe: &Recipe) -> String {
    let pragmas = recipe.lines(|name, value| format!("\t\t\"{name}({value})\","));
    format!(
        "package main

import (
\t\"database/sql\"
\t\"net/url\"

\t_ \"modernc.org/sqlite\"
)

// Open opens the database. Each connection of the pool sets these, in this order.
func Open() (*sql.DB, error) {{
\tpragmas := []string{{
{pragmas}\t}}
\toptions := url.Values{{\"_pragma\": pragmas, \"_txlock\": {{\"immediate\"}}}}
\treturn sql.Open(\"sqlite\", \"file:app.db?\"+options.Encode())
}}
"
    )
}
