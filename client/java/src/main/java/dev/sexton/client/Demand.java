package dev.sexton.client;

import java.time.Duration;

/** How much work a pool has. */
public record Demand(String pool, long waiting, long running, Duration oldestWait) {}
