-- Back to an empty schema, with all that is recorded in it. For a platform at rest, and for tests. The schema stays:
-- it holds the record of applied migrations.
DROP TABLE sexton.retention, sexton.queue_incidents, sexton.sweep_kept, sexton.unknown_overflow,
    sexton.unknown_messages, sexton.bulk_questions, sexton.bulk_items, sexton.bulks, sexton.failure_hours,
    sexton.failure_counts, sexton.failure_changes, sexton.failure_groups, sexton.failures_fill, sexton.failures,
    sexton.operator_actions, sexton.offers, sexton.instances, sexton.held_firings, sexton.holds, sexton.planner_clock,
    sexton.gaps, sexton.attempt_output, sexton.attempts, sexton.executions, sexton.job_revisions, sexton.jobs;
DROP FUNCTION sexton.record_job_revision(), sexton.delete_attempts(), sexton.operator_actions_are_append_only(),
    sexton.delete_old_operator_actions(timestamptz, timestamptz, integer), sexton.index_failure(),
    sexton.clear_fingerprint(), sexton.record_failure_change();
