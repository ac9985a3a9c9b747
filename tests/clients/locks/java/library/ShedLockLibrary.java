import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import javax.sql.DataSource;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbc.JdbcLockProvider;

/** A row lock by ShedLock itself; compiled where SHEDLOCK_JARS names the jars of the library. */
final class ShedLockLibrary implements Lock {
    private final LockProvider provider;
    private final String name;
    private final Duration atMost;
    private final Duration atLeast;
    private SimpleLock lock;

    ShedLockLibrary(DataSource dataSource, String table, String name, String lockedBy, long atMostMs, long atLeastMs) {
        provider = new JdbcLockProvider(JdbcLockProvider.Configuration.builder(dataSource)
                .withTableName(table)
                .withLockedByValue(lockedBy)
                .usingDbTime()
                .build());
        this.name = name;
        atMost = Duration.ofMillis(atMostMs);
        atLeast = Duration.ofMillis(atLeastMs);
    }

    @Override
    public boolean take() {
        Optional<SimpleLock> taken = provider.lock(new LockConfiguration(Instant.now(), name, atMost, atLeast));
        lock = taken.orElse(null);
        return taken.isPresent();
    }

    /** The library does not say whether the row was still its own. */
    @Override
    public boolean release() {
        lock.unlock();
        return true;
    }
}
