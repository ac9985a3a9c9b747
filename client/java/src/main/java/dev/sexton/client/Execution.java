package dev.sexton.client;

import java.time.Instant;
import java.util.UUID;

/**
 * What has become of an execution.
 *
 * @param result what the task returned, as JSON text; null if nothing
 */
public record Execution(
        UUID executionId, String job, String key, String state, int attempt, Instant scheduledFor, Instant startedAt,
        Instant finishedAt, String outcome, String result, String errorClass, String errorMessage) {

    /** Whether nothing happens to it without an operator: it is neither waiting, nor running, nor retrying. */
    public boolean ended() {
        return !state.equals("pending") && !state.equals("running") && !state.equals("retrying");
    }
}
