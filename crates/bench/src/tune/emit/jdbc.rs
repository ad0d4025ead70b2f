//! Writes settings for Java's JDBC with sqlite-jdbc of xerial.
//!
//! Its `SQLiteConfig` lacks some PRAGMAs, such as `wal_autocheckpoint`, and sets the others in its
//! own order. Therefore the settings are statements, which a pool supports, too.

use super::check;
use super::recipe::PragmaRecipe;

pub(super) fn write(recipe: &PragmaRecipe) -> String {
    let pragmas = recipe.lines("        ", |name, value| line(name, value) + ",");
    format!(
        "import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

final class Database {{
    /** For each connection, in this order. HikariCP: join by ';' as connectionInitSql. */
    static final List<String> PRAGMAS = List.of(
{}    );

    static Connection open() throws SQLException {{
        Connection connection = DriverManager.getConnection(\"jdbc:sqlite:app.db\");
        try (Statement statement = connection.createStatement()) {{
            for (String pragma : PRAGMAS) {{
                statement.execute(pragma);
            }}
            return connection;
        }} catch (SQLException error) {{
            connection.close();
            throw error;
        }}
    }}
}}
",
        without_last_comma(&pragmas)
    )
}

/// Removes the last comma, because Java allows none after the last argument.
fn without_last_comma(lines: &str) -> String {
    lines.strip_suffix(",\n").map_or_else(String::new, |lines| format!("{lines}\n"))
}

pub(super) fn line(name: &str, value: &str) -> String {
    format!("\"PRAGMA {name} = {value}\"")
}

pub(super) fn check() -> String {
    let (pragmas, query) = (check::pragmas("        "), check::query("        "));
    format!(
        "static void printSettings(java.sql.Connection connection) throws java.sql.SQLException {{
    var queries = new java.util.LinkedHashMap<String, String>();
    queries.put(\"\", \"\"\"
        {query}\"\"\");
    String names = \"\"\"
        {pragmas}\"\"\";
    for (String name : names.split(\"\\\\s+\")) queries.put(name + \"=\", \"PRAGMA \" + name);
    for (var query : queries.entrySet()) try (var statement = connection.createStatement()) {{
        if (!statement.execute(query.getValue())) continue;
        for (var rows = statement.getResultSet(); rows.next();)
            System.out.println(query.getKey() + rows.getString(1));
    }}
    System.out.println(\"framework=jdbc\");
    for (String name : new String[] {{\"SQLITE_TMPDIR\", \"TMPDIR\"}})
        System.out.println(name + \"=\" + System.getenv().getOrDefault(name, \"\"));
}}
"
    )
}
