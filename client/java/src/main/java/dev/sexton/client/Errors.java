package dev.sexton.client;

import java.lang.reflect.Method;
import java.sql.SQLException;

/** Turns the driver's errors into those of Sexton. */
final class Errors {
    private Errors() {}

    /** The SextonException for a driver's error, or the error itself if it isn't one of Sexton's. */
    static SQLException from(SQLException error) {
        String state = error.getSQLState();
        if (state == null || !state.startsWith("SX")) {
            return error;
        }
        // Of the PostgreSQL driver, without a dependency on it.
        Object server = read(error, "getServerErrorMessage");
        String said = (String) read(server, "getMessage");
        String message = said == null ? error.getMessage() : said;
        String hint = (String) read(server, "getHint");
        String detail = (String) read(server, "getDetail");
        return switch (state) {
            case "SX001" -> new SextonException.UnknownJob(message, state, hint, detail, error);
            case "SX002" -> new SextonException.DeletedJob(message, state, hint, detail, error);
            case "SX003" -> new SextonException.PausedJob(message, state, hint, detail, error);
            case "SX010" -> new SextonException.InvalidArgument(message, state, hint, detail, error);
            case "SX011", "SX012" -> new SextonException.InvalidParams(message, state, hint, detail, error);
            case "SX020" -> new SextonException.TooManyItems(message, state, hint, detail, error);
            default -> new SextonException(message, state, hint, detail, error);
        };
    }

    private static Object read(Object owner, String getter) {
        if (owner == null) {
            return null;
        }
        try {
            Method method = owner.getClass().getMethod(getter);
            return method.invoke(owner);
        } catch (ReflectiveOperationException absent) {
            return null;
        }
    }
}
