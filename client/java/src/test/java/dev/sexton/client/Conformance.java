package dev.sexton.client;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.UUID;

/** Runs conformance.json, whose path is the first argument, over JDBC; client/README.md describes the file. */
public final class Conformance {
    private Conformance() {}

    public static void main(String[] arguments) throws Exception {
        String run = "conformance-" + UUID.randomUUID().toString().substring(0, 13);
        String text = Files.readString(Path.of(arguments[0])).replace("{run}", run);
        JsonNode file = new ObjectMapper().readTree(text);
        int passed = 0;
        int failed = 0;
        try (Connection setup = connect()) {
            for (JsonNode job : file.get("jobs")) {
                sql(setup, file.get("sql").get("create_job").asText(), job.toString());
            }
        }
        for (JsonNode one : file.get("cases")) {
            int step = 0;
            try (Connection connection = connect()) {
                ConformanceCase running = new ConformanceCase(connection, file.get("sql"));
                for (JsonNode each : one.get("steps")) {
                    step++;
                    running.step(each);
                }
                passed++;
            } catch (Exception | AssertionError error) {
                System.out.println("FAILED " + one.get("name").asText() + ", step " + step + ": " + error);
                failed++;
            }
        }
        List<String> problems = SpringTransaction.problems(run);
        problems.forEach(problem -> System.out.println("FAILED in a transaction of Spring: " + problem));
        if (problems.isEmpty()) {
            passed++;
        } else {
            failed++;
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    /** The JDBC address of DATABASE_URL, which libpq's programs and those of other languages read too. */
    static String url() {
        java.net.URI uri = java.net.URI.create(System.getenv("DATABASE_URL"));
        String[] user = uri.getUserInfo() == null ? new String[] {"postgres"} : uri.getUserInfo().split(":", 2);
        int port = uri.getPort() < 0 ? 5432 : uri.getPort();
        return "jdbc:postgresql://" + uri.getHost() + ":" + port + uri.getPath() + "?user=" + user[0]
                + (user.length > 1 ? "&password=" + user[1] : "");
    }

    static Connection connect() throws SQLException {
        return DriverManager.getConnection(url());
    }

    /** The first column of the first row of a statement of the file; null if it has none. */
    static String sql(Connection connection, String text, String value) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(text.replace(":value", "?"))) {
            statement.setString(1, value);
            if (!statement.execute()) {
                return null;
            }
            try (ResultSet rows = statement.getResultSet()) {
                return rows.next() ? rows.getString(1) : null;
            }
        }
    }
}
