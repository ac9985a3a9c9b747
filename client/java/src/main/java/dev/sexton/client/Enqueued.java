package dev.sexton.client;

import java.util.UUID;

/**
 * The execution that a call created, or that had its key already.
 *
 * @param ordinal the item's place in the list of enqueueMany, from 1
 */
public record Enqueued(UUID executionId, String key, boolean created, String state, int ordinal) {}
