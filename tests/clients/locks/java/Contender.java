import java.io.IOException;
import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Contends for a lock from the JVM, by JDBC; run.sh says how. What it does is that of contender.py. */
public final class Contender {
    private final CountDownLatch end = new CountDownLatch(1);
    private final Connection connection;
    private final String key;
    private final String holder;
    private final boolean isHolding;
    private final Lock lock;

    public static void main(String[] arguments) throws Exception {
        PGSimpleDataSource dataSource = dataSource(URI.create(System.getenv("DATABASE_URL")));
        dataSource.setApplicationName(arguments[2]);
        new Contender(dataSource, arguments).run();
    }

    private Contender(DataSource dataSource, String[] arguments) throws Exception {
        connection = dataSource.getConnection();
        key = arguments[1];
        holder = arguments[2];
        isHolding = arguments.length > 3 && arguments[3].equals("hold");
        lock = switch (arguments[0]) {
            case "advisory" -> new AdvisoryLock();
            case "tick" -> new TickLock();
            case "row" -> rowLock(dataSource);
            default -> throw new IllegalArgumentException(arguments[0]);
        };
    }

    private void run() throws Exception {
        Thread watch = new Thread(this::waitForEnd);
        watch.setDaemon(true);
        watch.start();
        System.out.println("ready");
        while (end.getCount() > 0) {
            if (lock.take()) {
                hold();
                if (isHolding) {
                    return;
                }
            } else {
                answer("INSERT INTO refused (lock, holder) VALUES (?, ?) RETURNING id", key, holder);
            }
            Thread.sleep(ThreadLocalRandom.current().nextInt(20));
        }
    }

    private void hold() throws Exception {
        String began = "INSERT INTO held (lock, holder, tick) VALUES (?, ?, ?) RETURNING id";
        Object id = answer(began, key, holder, lock.tick());
        if (isHolding) {
            System.out.println("holding");
            end.await();
        }
        Thread.sleep(ThreadLocalRandom.current().nextInt(5));
        answer("UPDATE held SET ended = clock_timestamp() WHERE id = ? RETURNING id", id);
        if (!lock.release()) {
            throw new IllegalStateException("the lock was not held to the end");
        }
    }

    private void waitForEnd() {
        try {
            System.in.readAllBytes();
        } catch (IOException error) {
            System.err.println(error);
        }
        end.countDown();
    }

    private Object answer(String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                if (values[i] == null) {
                    statement.setNull(i + 1, java.sql.Types.TIMESTAMP_WITH_TIMEZONE);
                } else {
                    statement.setObject(i + 1, values[i]);
                }
            }
            try (ResultSet rows = statement.executeQuery()) {
                rows.next();
                return rows.getObject(1);
            }
        }
    }

    private Lock rowLock(DataSource dataSource) throws Exception {
        String table = System.getenv().getOrDefault("LOCK_TABLE", "sexton.lock_rows");
        long atMostMs = Long.parseLong(System.getenv().getOrDefault("AT_MOST_MS", "60000"));
        long atLeastMs = Long.parseLong(System.getenv().getOrDefault("AT_LEAST_MS", "0"));
        Class<?> library;
        try {
            library = Class.forName("ShedLockLibrary");
        } catch (ClassNotFoundException error) {
            return new ShedLockStatements(connection, table, key, holder, atMostMs, atLeastMs);
        }
        System.err.println("with the library of ShedLock");
        var constructor = library.getDeclaredConstructors()[0];
        return (Lock) constructor.newInstance(dataSource, table, key, holder, atMostMs, atLeastMs);
    }

    private final class AdvisoryLock implements Lock {
        @Override
        public boolean take() throws SQLException {
            return (boolean) answer("SELECT pg_try_advisory_lock(?)", Long.parseLong(key));
        }

        @Override
        public boolean release() throws SQLException {
            return (boolean) answer("SELECT pg_advisory_unlock(?)", Long.parseLong(key));
        }
    }

    private final class TickLock implements Lock {
        private Timestamp tick;

        @Override
        public boolean take() throws SQLException {
            tick = new Timestamp(System.currentTimeMillis() / 100 * 100);
            return (boolean) answer("SELECT sexton.guard_try(?, ?::timestamptz)", Long.parseLong(key), tick);
        }

        @Override
        public boolean release() throws SQLException {
            return (boolean) answer("SELECT sexton.guard_done(?, ?::timestamptz)", Long.parseLong(key), tick);
        }

        @Override
        public Timestamp tick() {
            return tick;
        }
    }

    private static PGSimpleDataSource dataSource(URI url) {
        PGSimpleDataSource dataSource = new PGSimpleDataSource();
        dataSource.setServerNames(new String[] {url.getHost()});
        dataSource.setPortNumbers(new int[] {url.getPort() < 0 ? 5432 : url.getPort()});
        dataSource.setDatabaseName(url.getPath().substring(1));
        String[] user = url.getUserInfo() == null ? new String[] {"postgres"} : url.getUserInfo().split(":", 2);
        dataSource.setUser(user[0]);
        dataSource.setPassword(user.length > 1 ? user[1] : null);
        return dataSource;
    }
}
