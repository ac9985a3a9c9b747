package dev.sexton.client;

import java.util.UUID;

/** Whether a call cancelled an execution; {@code executionId} and {@code state} are null if none has the key. */
public record Cancelled(UUID executionId, String key, boolean cancelled, String state) {}
