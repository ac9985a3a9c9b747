DROP FUNCTION sexton.guard_done(bigint, timestamptz, text, text), sexton.guard_try_xact(bigint, timestamptz),
    sexton.guard_try(bigint, timestamptz), sexton.holds_lock(bigint), sexton.release_lock(bigint), sexton.take_tick(bigint, timestamptz, timestamptz, boolean),
    sexton.check_tick(bigint, timestamptz, timestamptz);
DROP TABLE sexton.guard_ticks;
