import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/**
 * Opens app.db with the emitted snippet, and prints each PRAGMA that the command line names, as two
 * connections see it.
 */
final class ReadBack {
    public static void main(String[] pragmas) throws Exception {
        try (Connection one = Database.open(); Connection other = Database.open()) {
            System.out.println("[" + read(one, pragmas) + "," + read(other, pragmas) + "]");
        }
    }

    private static String read(Connection connection, String[] pragmas) throws Exception {
        List<String> values = new ArrayList<>();
        for (String pragma : pragmas) {
            try (Statement statement = connection.createStatement();
                    ResultSet result = statement.executeQuery("PRAGMA " + pragma)) {
                result.next();
                values.add("\"" + pragma + "\":\"" + result.getString(1) + "\"");
            }
        }
        return "{" + String.join(",", values) + "}";
    }
}
