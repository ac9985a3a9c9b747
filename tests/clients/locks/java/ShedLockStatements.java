import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/**
 * A row lock by the statements that ShedLock 7.9 sends to PostgreSQL with {@code usingDbTime()}, each in a transaction of its own.
 *
 * <p>Like that library it inserts only until it knows that the row is there, and updates from then on.
 */
final class ShedLockStatements implements Lock {
    private static final String NOW = "timezone('utc', CURRENT_TIMESTAMP)";
    private static final String AT_MOST = NOW + " + make_interval(secs => ?)";
    private static final String AT_LEAST = "locked_at + make_interval(secs => ?)";

    private final Connection connection;
    private final String table;
    private final String name;
    private final String lockedBy;
    private final double atMostSeconds;
    private final double atLeastSeconds;
    private boolean rowIsThere;

    ShedLockStatements(Connection connection, String table, String name, String lockedBy, long atMostMs, long atLeastMs) {
        this.connection = connection;
        this.table = table;
        this.name = name;
        this.lockedBy = lockedBy;
        this.atMostSeconds = atMostMs / 1000d;
        this.atLeastSeconds = atLeastMs / 1000d;
    }

    @Override
    public boolean take() throws SQLException {
        String free = " SET lock_until = " + AT_MOST + ", locked_at = " + NOW + ", locked_by = ? WHERE " + table
                + ".name = ? AND " + table + ".lock_until <= " + NOW;
        if (!rowIsThere) {
            rowIsThere = true;
            String insert = "INSERT INTO " + table + "(name, lock_until, locked_at, locked_by) VALUES(?, " + AT_MOST + ", "
                    + NOW + ", ?) ON CONFLICT (name) DO UPDATE" + free;
            if (update(insert, name, atMostSeconds, lockedBy, atMostSeconds, lockedBy, name) > 0) {
                return true;
            }
        }
        return update("UPDATE " + table + free, atMostSeconds, lockedBy, name) > 0;
    }

    @Override
    public boolean release() throws SQLException {
        String end = "CASE WHEN " + AT_LEAST + " > " + NOW + " THEN " + AT_LEAST + " ELSE " + NOW + " END";
        String unlock = "UPDATE " + table + " SET lock_until = " + end + " WHERE name = ? AND locked_by = ?";
        return update(unlock, atLeastSeconds, atLeastSeconds, name, lockedBy) > 0;
    }

    private int update(String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setObject(i + 1, values[i]);
            }
            return statement.executeUpdate();
        }
    }
}
