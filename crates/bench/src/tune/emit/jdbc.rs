//! For Java's JDBC with sqlite-jdbc of xerial.
//!
//! Its `SQLiteConfig` knows some PRAGMAs, and none of others, such as `wal_autocheckpoint`; it sets them in an
//! order of its own. So a connection is given them as statements, which a pool can do, too.

use super::Recipe;

pub(super) fn write(recipe: &Recipe) -> String {
    let pragmas = recipe.lines(|name, value| format!("        \"PRAGMA {name} = {value}\","));
    format!(
        "import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

final class Database {{
    /** For each connection, in this order; of HikariCP, joined by ';' as connectionInitSql. */
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

/// Java allows none after the last argument.
fn without_last_comma(lines: &str) -> String {
    lines.strip_suffix(",\n").map_or_else(String::new, |lines| format!("{lines}\n"))
}
