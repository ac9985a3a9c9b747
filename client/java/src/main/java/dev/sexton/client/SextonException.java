package dev.sexton.client;

import java.sql.SQLException;

/**
 * A call that Sexton refused; nothing was enqueued or cancelled.
 *
 * <p>It is a {@link SQLException} with the SQLSTATE, as JDBC's own errors are. Those, such as a lost connection or a
 * serialization failure, are thrown as they are.
 */
public class SextonException extends SQLException {
    private static final long serialVersionUID = 1L;

    private final String hint;
    private final String detail;
    private int firstItem = 1;

    SextonException(String message, String sqlState, String hint, String detail, Throwable cause) {
        super(message, sqlState, cause);
        this.hint = hint;
        this.detail = detail;
    }

    /** What to do about it; null if there is no hint. */
    public String hint() {
        return hint;
    }

    /** All items that are wrong, a line each; null if there is no detail. */
    public String detail() {
        return detail;
    }

    /** The place in the caller's list of the item that {@link #detail()} counts as item 1. */
    public int firstItem() {
        return firstItem;
    }

    void addOffset(int offset) {
        firstItem += offset;
    }

    /** There is no job of this name (SX001). */
    public static final class UnknownJob extends SextonException {
        private static final long serialVersionUID = 1L;

        UnknownJob(String message, String sqlState, String hint, String detail, Throwable cause) {
            super(message, sqlState, hint, detail, cause);
        }
    }

    /** The job was deleted (SX002). */
    public static final class DeletedJob extends SextonException {
        private static final long serialVersionUID = 1L;

        DeletedJob(String message, String sqlState, String hint, String detail, Throwable cause) {
            super(message, sqlState, hint, detail, cause);
        }
    }

    /** The job is paused (SX003). */
    public static final class PausedJob extends SextonException {
        private static final long serialVersionUID = 1L;

        PausedJob(String message, String sqlState, String hint, String detail, Throwable cause) {
            super(message, sqlState, hint, detail, cause);
        }
    }

    /** An argument is wrong, for example an empty key (SX010). */
    public static final class InvalidArgument extends SextonException {
        private static final long serialVersionUID = 1L;

        InvalidArgument(String message, String sqlState, String hint, String detail, Throwable cause) {
            super(message, sqlState, hint, detail, cause);
        }
    }

    /** The params break a limit (SX011), or violate the schema of the task (SX012). */
    public static final class InvalidParams extends SextonException {
        private static final long serialVersionUID = 1L;

        InvalidParams(String message, String sqlState, String hint, String detail, Throwable cause) {
            super(message, sqlState, hint, detail, cause);
        }
    }

    /** One call has more than 10,000 items (SX020). */
    public static final class TooManyItems extends SextonException {
        private static final long serialVersionUID = 1L;

        TooManyItems(String message, String sqlState, String hint, String detail, Throwable cause) {
            super(message, sqlState, hint, detail, cause);
        }
    }
}
