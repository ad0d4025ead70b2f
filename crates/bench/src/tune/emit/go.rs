//! Writes settings for Go's `database/sql` with modernc.org/sqlite. Its data source name carries
//! PRAGMAs to each connection of the pool: an executed PRAGMA reaches only a single connection,
//! and is lost with it.

use super::check;
use super::recipe::PragmaRecipe;

pub(super) fn write(recipe: &PragmaRecipe) -> String {
    let pragmas = recipe.lines("\t\t", line);
    format!(
        "package main

import (
\t\"database/sql\"
\t\"net/url\"

\t_ \"modernc.org/sqlite\"
)

// Open opens the database. Each connection of the pool runs these PRAGMAs, in this order.
func Open() (*sql.DB, error) {{
\tpragmas := []string{{
{pragmas}\t}}
\toptions := url.Values{{\"_pragma\": pragmas, \"_txlock\": {{\"immediate\"}}}}
\treturn sql.Open(\"sqlite\", \"file:app.db?\"+options.Encode())
}}
"
    )
}

pub(super) fn line(name: &str, value: &str) -> String {
    format!("\"{name}({value})\",")
}

pub(super) fn check() -> String {
    let (pragmas, query) = (check::pragmas("\t\t"), check::query("\t\t"));
    format!(
        "func PrintSettings(db *sql.DB) (err error) {{
\tqueries := map[string]string{{\"\": `{query}`}}
\tnames := `{pragmas}`
\tfor _, name := range strings.Fields(names) {{
\t\tqueries[name+\"=\"] = \"PRAGMA \" + name
\t}}
\tfor name, query := range queries {{
\t\trows, failed := db.Query(query)
\t\tfor value := any(nil); failed == nil && rows.Next() && rows.Scan(&value) == nil; {{
\t\t\tfmt.Printf(\"%s%v\\n\", name, value)
\t\t}}
\t\terr = errors.Join(err, failed)
\t}}
\tfmt.Println(\"framework=go\\nSQLITE_TMPDIR=\" + os.Getenv(\"SQLITE_TMPDIR\"))
\tfmt.Println(\"TMPDIR=\" + os.Getenv(\"TMPDIR\"))
\treturn err
}}
"
    )
}
