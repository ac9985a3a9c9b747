import java.sql.SQLException;

/** A lock that a contender takes and releases. */
interface Lock {
    /** Whether it was taken; does not wait. */
    boolean take() throws SQLException;

    /** Whether it was held to the end, as far as that is known. */
    boolean release() throws SQLException;

    /** The tick of the lock that was taken last; null: it has none. */
    default java.sql.Timestamp tick() {
        return null;
    }
}
