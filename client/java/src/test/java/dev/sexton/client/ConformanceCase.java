package dev.sexton.client;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigInteger;
import java.sql.Connection;
import java.sql.Savepoint;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeoutException;

/** One case of the file with what its steps have remembered. */
final class ConformanceCase {
    private static final Map<String, Class<?>> CLASSES = Map.of(
            "SX001", SextonException.UnknownJob.class, "SX002", SextonException.DeletedJob.class,
            "SX003", SextonException.PausedJob.class, "SX010", SextonException.InvalidArgument.class,
            "SX011", SextonException.InvalidParams.class, "SX012", SextonException.InvalidParams.class,
            "SX020", SextonException.TooManyItems.class);
    private static final ObjectMapper EXACT = new ObjectMapper()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS, DeserializationFeature.USE_BIG_INTEGER_FOR_INTS);

    private final Connection connection;
    private final JsonNode sql;
    private final Map<String, Object> remembered = new HashMap<>();
    private final Map<String, Savepoint> savepoints = new HashMap<>();

    ConformanceCase(Connection connection, JsonNode sql) {
        this.connection = connection;
        this.sql = sql;
    }

    void step(JsonNode step) throws Exception {
        String operation = step.get("do").asText();
        switch (operation) {
            case "begin" -> connection.setAutoCommit(false);
            case "commit" -> {
                connection.commit();
                connection.setAutoCommit(true);
            }
            case "rollback" -> {
                connection.rollback();
                connection.setAutoCommit(true);
            }
            case "savepoint" -> savepoints.put(text(step, "name"), connection.setSavepoint());
            case "rollback_to" -> connection.rollback(savepoints.get(text(step, "name")));
            case "stored" -> {
                String id = value(step.get("execution_id")).toString();
                JsonNode found = EXACT.readTree(Conformance.sql(connection, text(sql, "stored"), id));
                JsonNode expected = EXACT.readTree(Json.write(value(step.get("expect"))));
                require(found.equals(expected), "stored is " + found);
            }
            default -> call(operation, step);
        }
    }

    private void call(String operation, JsonNode step) throws Exception {
        Object found;
        try {
            found = run(operation, step);
        } catch (SextonException error) {
            JsonNode expected = step.get("expect_error");
            if (expected == null) {
                throw error;
            }
            require(text(expected, "sqlstate").equals(error.getSQLState()), error.toString());
            require(CLASSES.get(error.getSQLState()) == error.getClass(), error.toString());
            require(expected.get("hint").asBoolean() == (error.hint() != null), "hint of " + error);
            require(!expected.has("detail") || error.detail() != null, "detail of " + error);
            require(error.firstItem() == expected.path("first_item").asInt(1), "first item of " + error);
            return;
        } catch (TimeoutException error) {
            require(step.has("expect_timeout"), error.toString());
            return;
        }
        require(!step.has("expect_error") && !step.has("expect_timeout"), "no error but " + found);
        if (step.has("as")) {
            remembered.put(text(step, "as"), found);
        }
        if (step.has("expect_count")) {
            List<?> answers = (List<?>) found;
            require(answers.size() == step.get("expect_count").asInt(), answers.size() + " answers");
            for (int n = 0; n < answers.size(); n++) {
                require(((Enqueued) answers.get(n)).ordinal() == n + 1, "ordinal of answer " + (n + 1));
            }
        }
        if (step.has("expect")) {
            check(step.get("expect"), found, operation);
        }
    }

    private Object run(String operation, JsonNode step) throws Exception {
        String job = text(step, "job");
        Object key = value(step.get("key"));
        return switch (operation) {
            case "enqueue" -> SextonClient.enqueue(connection, enqueue(job, (Map<?, ?>) value(step)));
            case "enqueue_many" -> {
                List<Enqueue> items = new ArrayList<>();
                for (Object item : (List<?>) value(step.get("items"))) {
                    items.add(enqueue(null, (Map<?, ?>) item));
                }
                yield step.has("batch_size")
                        ? SextonClient.enqueueMany(connection, job, items, step.get("batch_size").asInt())
                        : SextonClient.enqueueMany(connection, job, items);
            }
            case "cancel" -> SextonClient.cancel(connection, job, (String) key, (String) value(step.get("reason")));
            case "execution" -> step.has("execution_id")
                    ? SextonClient.execution(connection, UUID.fromString(value(step.get("execution_id")).toString()))
                    : SextonClient.execution(connection, job, (String) key);
            case "demand" -> SextonClient.demand(connection, text(step, "pool"));
            case "wait_for" -> SextonClient.waitFor(connection, UUID.fromString(value(step.get("execution_id")).toString()),
                    Duration.ofMillis(Math.round(step.get("timeout_seconds").asDouble() * 1000)));
            default -> throw new IllegalStateException("unknown operation " + operation);
        };
    }

    @SuppressWarnings("unchecked")
    private static Enqueue enqueue(String job, Map<?, ?> given) {
        Enqueue what = Enqueue.job(job).key((String) given.get("key")).uniqueFor((String) given.get("unique_for"))
                .ifExists((String) given.get("if_exists"));
        if (given.get("params") != null) {
            what = what.params((Map<String, ?>) given.get("params"));
        }
        if (given.get("labels") != null) {
            what = what.labels((Map<String, String>) given.get("labels"));
        }
        if (given.get("run_at_seconds") != null) {
            what = what.runAt(in((Number) given.get("run_at_seconds")));
        }
        if (given.get("delay_seconds") != null) {
            what = what.delay(Duration.ofMillis(Math.round(((Number) given.get("delay_seconds")).doubleValue() * 1000)));
        }
        return what;
    }

    /** A value of the file, with its references and generators replaced. */
    private Object value(JsonNode given) {
        if (given == null || given.isNull()) {
            return null;
        }
        if (given.isTextual() && given.asText().startsWith("$")) {
            String[] path = given.asText().substring(1).split("\\.");
            Object found = remembered.get(path[0]);
            for (int n = 1; n < path.length; n++) {
                found = path[n].matches("\\d+") ? ((List<?>) found).get(Integer.parseInt(path[n]) - 1) : field(found, path[n]);
            }
            return found;
        }
        if (given.isTextual()) {
            return given.asText();
        }
        if (given.isBoolean()) {
            return given.asBoolean();
        }
        if (given.isNumber()) {
            return given.numberValue();
        }
        if (given.isArray()) {
            List<Object> items = new ArrayList<>();
            given.forEach(item -> items.add(value(item)));
            return items;
        }
        if (given.has("$integer")) {
            return new BigInteger(text(given, "$integer"));
        }
        if (given.has("$repeat")) {
            return text(given, "$repeat").repeat(given.get("times").asInt());
        }
        if (given.has("$nest")) {
            Map<String, Object> nested = Map.of();
            for (int n = 1; n < given.get("$nest").asInt(); n++) {
                nested = Map.of("n", nested);
            }
            return nested;
        }
        if (given.has("$items")) {
            List<Object> items = new ArrayList<>();
            for (int n = 1; n <= given.get("$items").asInt(); n++) {
                items.add(Map.of("key", text(given, "key") + n));
            }
            return items;
        }
        Map<String, Object> fields = new LinkedHashMap<>();
        given.fields().forEachRemaining(one -> {
            if (!one.getKey().startsWith("expect")) {
                fields.put(one.getKey(), value(one.getValue()));
            }
        });
        return fields;
    }

    private void check(JsonNode expected, Object found, String place) {
        if (expected.isArray()) {
            List<?> answers = (List<?>) found;
            require(answers.size() == expected.size(), place + " has " + answers.size() + " entries");
            for (int n = 0; n < expected.size(); n++) {
                check(expected.get(n), answers.get(n), place + "[" + (n + 1) + "]");
            }
        } else if (expected.has("$present")) {
            require(found != null, place + " is missing");
        } else if (expected.has("$differs")) {
            require(!found.equals(value(expected.get("$differs"))), place + " is " + found + " again");
        } else if (expected.has("$in_seconds")) {
            Instant low = in(expected.get("$in_seconds").get(0).numberValue());
            Instant high = in(expected.get("$in_seconds").get(1).numberValue());
            require(!low.isAfter((Instant) found) && !high.isBefore((Instant) found), place + " is " + found);
        } else if (expected.has("$plus")) {
            long before = ((Number) value(expected.get("$plus").get(0))).longValue();
            require(((Number) found).longValue() == before + expected.get("$plus").get(1).asLong(), place + " is " + found);
        } else if (expected.isObject()) {
            expected.fields().forEachRemaining(one ->
                    check(one.getValue(), field(found, one.getKey()), place + "." + one.getKey()));
        } else {
            Object wanted = value(expected);
            Object same = found instanceof Duration time ? time.toSeconds() : found;
            boolean equal = same instanceof Number number && wanted instanceof Number other
                    ? number.longValue() == other.longValue()
                    : java.util.Objects.equals(same, wanted);
            require(equal, place + " is " + found + ", not " + wanted);
        }
    }

    private static Object field(Object owner, String name) {
        StringBuilder accessor = new StringBuilder();
        for (String word : name.split("_")) {
            accessor.append(accessor.isEmpty() ? word : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        }
        try {
            return owner.getClass().getMethod(accessor.toString()).invoke(owner);
        } catch (ReflectiveOperationException | NullPointerException error) {
            throw new AssertionError("no " + name + " of " + owner, error);
        }
    }

    private static Instant in(Number seconds) {
        return Instant.now().plusMillis(Math.round(seconds.doubleValue() * 1000));
    }

    private static String text(JsonNode owner, String name) {
        return owner.has(name) ? owner.get(name).asText() : null;
    }

    private static void require(boolean holds, String problem) {
        if (!holds) {
            throw new AssertionError(problem);
        }
    }
}
