package dev.sexton.client;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;
import java.util.UUID;
import java.util.concurrent.TimeoutException;

/** Calls Sexton on a connection of the caller's, in its transaction; nothing here begins, commits or rolls back. */
public final class SextonClient {
    /** How many items one call of sexton.enqueue_many takes. */
    public static final int MAX_BATCH_ITEMS = 10_000;

    private static final String ENQUEUE =
            "SELECT 1, execution_id, key, created, state FROM sexton.enqueue(job => " + as("text") + ", params => "
            + as("jsonb") + ", key => " + as("text") + ", run_at => " + as("timestamptz") + ", delay => "
            + as("interval") + ", unique_for => " + as("text") + ", if_exists => " + as("text") + ", labels => "
            + as("jsonb") + ")";
    private static final String ENQUEUE_MANY =
            "SELECT ordinal, execution_id, key, created, state FROM sexton.enqueue_many(job => " + as("text")
            + ", items => " + as("jsonb") + ") ORDER BY ordinal";
    private static final String CANCEL =
            "SELECT execution_id, key, cancelled, state FROM sexton.cancel(job => " + as("text") + ", key => "
            + as("text") + ", reason => " + as("text") + ")";
    private static final String EXECUTION =
            "SELECT execution_id, job, key, state, attempt, scheduled_for, started_at, finished_at, outcome,"
            + " CAST(result AS text), error_class, error_message FROM sexton.execution(";
    private static final String DEMAND =
            "SELECT pool, waiting, running, CAST(extract(epoch FROM oldest_wait) * 1000000 AS bigint)"
            + " FROM sexton.demand(pool => " + as("text") + ")";

    private SextonClient() {}

    /** Enqueues one execution of a job; a key that is taken is answered with the execution that has it. */
    public static Enqueued enqueue(Connection connection, Enqueue what) throws SQLException {
        return query(connection, ENQUEUE, row -> enqueued(row, 0), what.job(), what.params(), what.key(),
                text(what.runAt()), what.delayText(), what.uniqueFor(), what.ifExists(), what.labels()).get(0);
    }

    /** Enqueues one execution per item, in as many calls as needed; they are one unit only inside a transaction. */
    public static List<Enqueued> enqueueMany(Connection connection, String job, List<Enqueue> items)
            throws SQLException {
        return enqueueMany(connection, job, items, MAX_BATCH_ITEMS);
    }

    /** As {@link #enqueueMany(Connection, String, List)}, with at most {@code batchSize} items in a call. */
    public static List<Enqueued> enqueueMany(Connection connection, String job, List<Enqueue> items, int batchSize)
            throws SQLException {
        List<Enqueued> answers = new ArrayList<>();
        int next = 0;
        do {
            int offset = next;
            next = Math.min(items.size(), offset + batchSize);
            StringJoiner batch = new StringJoiner(",", "[", "]");
            for (Enqueue item : items.subList(offset, next)) {
                if (item.job() != null && !item.job().equals(job)) {
                    throw new IllegalArgumentException("an item is of the job " + item.job() + ", not " + job);
                }
                batch.add(item.toJson());
            }
            try {
                answers.addAll(query(connection, ENQUEUE_MANY, row -> enqueued(row, offset), job, batch.toString()));
            } catch (SextonException error) {
                error.addOffset(offset);
                throw error;
            }
        } while (next < items.size());
        return answers;
    }

    /** Cancels the execution that has this key if it waits, or asks its worker to end it if it runs. */
    public static Cancelled cancel(Connection connection, String job, String key, String reason) throws SQLException {
        return query(connection, CANCEL, row -> new Cancelled(
                row.getObject(1, UUID.class), row.getString(2), row.getBoolean(3), row.getString(4)),
                job, key, reason).get(0);
    }

    /** Returns what has become of an execution; null if there is no such execution. */
    public static Execution execution(Connection connection, UUID executionId) throws SQLException {
        String call = EXECUTION + "execution_id => " + as("uuid") + ")";
        return query(connection, call, SextonClient::execution, executionId.toString()).get(0);
    }

    /** Returns what has become of the execution of a job that has this key; null if there is none. */
    public static Execution execution(Connection connection, String job, String key) throws SQLException {
        String call = EXECUTION + "job => " + as("text") + ", key => " + as("text") + ")";
        return query(connection, call, SextonClient::execution, job, key).get(0);
    }

    /** Returns how much work a pool has. */
    public static Demand demand(Connection connection, String pool) throws SQLException {
        return query(connection, DEMAND, row -> new Demand(row.getString(1), row.getLong(2), row.getLong(3),
                Duration.ofNanos(Math.multiplyExact(row.getLong(4), 1000L))), pool).get(0);
    }

    /**
     * Returns an execution when it has ended; null if there is no such execution.
     *
     * <p>Call it after the transaction that enqueued has committed, and on a connection in auto-commit mode: until the
     * commit nothing runs, and a transaction that stays open for the wait holds back VACUUM.
     *
     * @throws TimeoutException if it has not ended in time
     */
    public static Execution waitFor(Connection connection, UUID executionId, Duration timeout)
            throws SQLException, TimeoutException, InterruptedException {
        long deadline = System.nanoTime() + timeout.toNanos();
        for (long interval = 50; ; interval = Math.min(1000, interval * 3 / 2)) {
            Execution found = execution(connection, executionId);
            if (found == null || found.ended()) {
                return found;
            }
            long left = (deadline - System.nanoTime()) / 1_000_000;
            if (left <= 0) {
                throw new TimeoutException("execution " + executionId + " has not ended within " + timeout);
            }
            Thread.sleep(Math.min(interval, left));
        }
    }

    private interface RowReader<T> {
        T read(ResultSet row) throws SQLException;
    }

    private static <T> List<T> query(Connection connection, String sql, RowReader<T> reader, String... values)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setString(i + 1, values[i]);
            }
            List<T> rows = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    rows.add(reader.read(row));
                }
            }
            return rows;
        } catch (SQLException error) {
            throw Errors.from(error);
        }
    }

    // Every value is passed as text, and PostgreSQL converts it.
    private static String as(String type) {
        return "CAST(CAST(? AS text) AS " + type + ")";
    }

    private static String text(Object value) {
        return value == null ? null : value.toString();
    }

    private static Enqueued enqueued(ResultSet row, int offset) throws SQLException {
        return new Enqueued(row.getObject(2, UUID.class), row.getString(3), row.getBoolean(4), row.getString(5),
                offset + row.getInt(1));
    }

    private static Execution execution(ResultSet row) throws SQLException {
        UUID id = row.getObject(1, UUID.class);
        return id == null ? null : new Execution(id, row.getString(2), row.getString(3), row.getString(4),
                row.getInt(5), instant(row, 6), instant(row, 7), instant(row, 8), row.getString(9), row.getString(10),
                row.getString(11), row.getString(12));
    }

    private static Instant instant(ResultSet row, int column) throws SQLException {
        OffsetDateTime time = row.getObject(column, OffsetDateTime.class);
        return time == null ? null : time.toInstant();
    }
}
