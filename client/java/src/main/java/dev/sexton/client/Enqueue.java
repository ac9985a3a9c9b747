package dev.sexton.client;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What to enqueue: a job with its params and options. Each method returns a changed copy. */
public record Enqueue(
        String job, String params, String key, Instant runAt, Duration delay, String uniqueFor, String ifExists,
        String labels) {

    /** An execution of the job, as soon as possible, without a key. */
    public static Enqueue job(String job) {
        return new Enqueue(job, null, null, null, null, null, null, null);
    }

    /** An item of {@link SextonClient#enqueueMany}, whose job is named there. */
    public static Enqueue item() {
        return job(null);
    }

    /** The params as the text of a JSON object; PostgreSQL parses it. */
    public Enqueue params(String json) {
        return new Enqueue(job, json, key, runAt, delay, uniqueFor, ifExists, labels);
    }

    /** The params as maps, lists, texts, numbers, booleans and null; numbers keep all their digits. */
    public Enqueue params(Map<String, ?> params) {
        return params(Json.write(params));
    }

    /** The key that makes a second call find this execution. */
    public Enqueue key(String key) {
        return new Enqueue(job, params, key, runAt, delay, uniqueFor, ifExists, labels);
    }

    /** When it is to run, instead of a delay. */
    public Enqueue runAt(Instant runAt) {
        return new Enqueue(job, params, key, runAt, delay, uniqueFor, ifExists, labels);
    }

    /** How long after the call it is to run. */
    public Enqueue delay(Duration delay) {
        return new Enqueue(job, params, key, runAt, delay, uniqueFor, ifExists, labels);
    }

    /** How long the key is taken: {@code ever}, {@code open} (until the execution has ended), or a period as {@code 1h}. */
    public Enqueue uniqueFor(String uniqueFor) {
        return new Enqueue(job, params, key, runAt, delay, uniqueFor, ifExists, labels);
    }

    /** What a taken key does to an execution that has not begun: {@code keep}, {@code replace} or {@code postpone} it. */
    public Enqueue ifExists(String ifExists) {
        return new Enqueue(job, params, key, runAt, delay, uniqueFor, ifExists, labels);
    }

    /** Texts by which people find the execution. */
    public Enqueue labels(Map<String, String> labels) {
        return new Enqueue(job, params, key, runAt, delay, uniqueFor, ifExists, Json.write(labels));
    }

    String delayText() {
        if (delay == null) {
            return null;
        }
        // Microseconds alone: a day of PostgreSQL is not always 24 hours.
        long micros = Math.addExact(Math.multiplyExact(delay.getSeconds(), 1_000_000L), delay.getNano() / 1000);
        return micros + " microseconds";
    }

    String toJson() {
        List<String> fields = new ArrayList<>();
        if (params != null && !Json.isOneObject(params)) {
            throw new IllegalArgumentException("the params are not the text of one JSON object");
        }
        add(fields, "params", params);
        add(fields, "key", text(key));
        add(fields, "run_at", text(runAt));
        add(fields, "delay", text(delayText()));
        add(fields, "unique_for", text(uniqueFor));
        add(fields, "if_exists", text(ifExists));
        add(fields, "labels", labels);
        return "{" + String.join(",", fields) + "}";
    }

    private static String text(Object value) {
        return value == null ? null : Json.write(value.toString());
    }

    private static void add(List<String> fields, String name, String json) {
        if (json != null) {
            fields.add("\"" + name + "\":" + json);
        }
    }
}
