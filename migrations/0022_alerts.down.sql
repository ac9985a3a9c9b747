DROP TABLE sexton.notifications, sexton.routes, sexton.channels, sexton.incident_events, sexton.incidents, sexton.platform_findings;
DROP TRIGGER wake_monitor ON sexton.executions;
DROP TRIGGER wake_monitor ON sexton.failures;
DROP TRIGGER monitor_changed_job ON sexton.jobs;
DROP TRIGGER monitor_new_job ON sexton.jobs;
DROP FUNCTION sexton.wake_monitor_of_trigger(), sexton.wake_monitor_of_failure(), sexton.follow_job_with_monitor();
DROP TABLE sexton.monitor_wakeups, sexton.job_monitors;
ALTER TABLE sexton.jobs DROP start_within_ms, DROP max_runtime_ms, DROP alert_after, DROP recover_after,
    DROP remind_every_ms, DROP severity;
