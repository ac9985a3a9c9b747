-- Monitors of jobs, incidents, and the notifications about them.
SET LOCAL lock_timeout = '3s';

ALTER TABLE sexton.jobs
    ADD start_within_ms bigint CHECK (start_within_ms > 0),
    ADD max_runtime_ms  bigint CHECK (max_runtime_ms > 0),
    ADD alert_after     integer CHECK (alert_after BETWEEN 1 AND 100),
    ADD recover_after   integer CHECK (recover_after BETWEEN 1 AND 100),
    ADD remind_every_ms bigint CHECK (remind_every_ms > 0),
    ADD severity        text CHECK (severity IN ('low', 'medium', 'high'));
COMMENT ON COLUMN sexton.jobs.start_within_ms IS 'Milliseconds after the nominal time by which its first attempt is expected to begin; null: no expectation.';
COMMENT ON COLUMN sexton.jobs.max_runtime_ms IS 'Milliseconds; an attempt that runs longer opens an incident, and goes on; null: no expectation.';
COMMENT ON COLUMN sexton.jobs.alert_after IS 'The number of executions in a row that fail or miss an expectation and open an incident; null: 1.';
COMMENT ON COLUMN sexton.jobs.recover_after IS 'The number of successes that resolve the incident; null: 1.';
COMMENT ON COLUMN sexton.jobs.remind_every_ms IS 'Milliseconds between reminders of an open incident that nobody acknowledged; null: none.';
COMMENT ON COLUMN sexton.jobs.severity IS 'Severity of its incidents: low, medium or high; null: medium.';

-- Monitors

CREATE TABLE sexton.job_monitors (
    job_id         uuid PRIMARY KEY REFERENCES sexton.jobs (id) ON DELETE CASCADE,
    next_check_at  timestamptz NOT NULL,
    checked_at     timestamptz NOT NULL,
    violations     integer NOT NULL DEFAULT 0 CHECK (violations >= 0),
    violated_at    timestamptz,
    counted        jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(counted) = 'object'),
    gaps_seen      bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- Which monitors are due, in this order.
CREATE INDEX job_monitors_due ON sexton.job_monitors (next_check_at);
COMMENT ON TABLE sexton.job_monitors IS 'What schedulers know of each job''s expectations. A trigger adds a row for each job.';
COMMENT ON COLUMN sexton.job_monitors.job_id IS 'The job.';
COMMENT ON COLUMN sexton.job_monitors.next_check_at IS 'The earliest instant at which an expectation can be missed; infinity: only an event can change anything.';
COMMENT ON COLUMN sexton.job_monitors.checked_at IS 'When a scheduler last checked it, by the database''s clock.';
COMMENT ON COLUMN sexton.job_monitors.violations IS 'Executions in a row that failed or missed an expectation.';
COMMENT ON COLUMN sexton.job_monitors.violated_at IS 'When the last of these failed or missed it; null: none.';
COMMENT ON COLUMN sexton.job_monitors.counted IS 'Executions that are counted already, each with the attempt that failed or 0, so that none counts twice; at most 500.';
COMMENT ON COLUMN sexton.job_monitors.gaps_seen IS 'The last gap (gaps.id) that was checked.';

-- Appended to by what can change a monitor at once, so that no transaction of a caller waits for another one. A scheduler
-- removes the rows and checks the monitors within a second.
CREATE TABLE sexton.monitor_wakeups (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE sexton.monitor_wakeups IS 'Jobs whose monitors are to be checked at once.';
COMMENT ON COLUMN sexton.monitor_wakeups.id IS 'In the order in which they were requested.';
COMMENT ON COLUMN sexton.monitor_wakeups.job_id IS 'The job.';

-- With the owner's rights, like the two functions below, so that those who change jobs and executions need none here.
CREATE FUNCTION sexton.follow_job_with_monitor() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO sexton.job_monitors (job_id, next_check_at, checked_at)
        VALUES (NEW.id, NEW.created_at, NEW.created_at) ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO sexton.monitor_wakeups (job_id) VALUES (NEW.id);
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION sexton.follow_job_with_monitor() FROM PUBLIC;
CREATE TRIGGER monitor_new_job AFTER INSERT ON sexton.jobs
    FOR EACH ROW EXECUTE FUNCTION sexton.follow_job_with_monitor();
CREATE TRIGGER monitor_changed_job AFTER UPDATE OF revision, status, deleted_at ON sexton.jobs
    FOR EACH ROW EXECUTE FUNCTION sexton.follow_job_with_monitor();

CREATE FUNCTION sexton.wake_monitor_of_failure() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO sexton.monitor_wakeups (job_id) VALUES (NEW.job_id);
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION sexton.wake_monitor_of_failure() FROM PUBLIC;
CREATE TRIGGER wake_monitor AFTER INSERT ON sexton.failures
    FOR EACH ROW WHEN (NOT NEW.discarded) EXECUTE FUNCTION sexton.wake_monitor_of_failure();

-- A firing is expected, so its monitor is due anyway. What people and programs begin is not.
CREATE FUNCTION sexton.wake_monitor_of_trigger() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO sexton.monitor_wakeups (job_id) SELECT j.id FROM sexton.jobs j
    WHERE j.id = NEW.job_id AND (j.start_within_ms IS NOT NULL OR j.expect_within_ms IS NOT NULL OR j.max_runtime_ms IS NOT NULL);
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION sexton.wake_monitor_of_trigger() FROM PUBLIC;
CREATE TRIGGER wake_monitor AFTER INSERT ON sexton.executions
    FOR EACH ROW WHEN (NEW.tz_version IS NULL AND NEW.backfill IS NULL AND NEW.state <> 'skipped')
    EXECUTE FUNCTION sexton.wake_monitor_of_trigger();

INSERT INTO sexton.job_monitors (job_id, next_check_at, checked_at, gaps_seen)
SELECT id, now(), now(), coalesce((SELECT max(g.id) FROM sexton.gaps g), 0) FROM sexton.jobs;

CREATE TABLE sexton.platform_findings (
    code       text PRIMARY KEY,
    detail     text NOT NULL,
    first_seen timestamptz NOT NULL,
    last_seen  timestamptz NOT NULL
);
COMMENT ON TABLE sexton.platform_findings IS 'Findings of the platform''s monitors that stand now. One that lasts opens an incident.';
COMMENT ON COLUMN sexton.platform_findings.code IS 'What was found; for a pool or queue followed by its name.';
COMMENT ON COLUMN sexton.platform_findings.detail IS 'In words.';
COMMENT ON COLUMN sexton.platform_findings.first_seen IS 'Since when it stands.';
COMMENT ON COLUMN sexton.platform_findings.last_seen IS 'When it was last found.';

-- Incidents

CREATE TABLE sexton.incidents (
    id              uuid PRIMARY KEY,
    subject_kind    text NOT NULL CHECK (subject_kind IN ('job', 'check', 'group', 'platform', 'channel')),
    subject         text NOT NULL CHECK (length(subject) BETWEEN 1 AND 300),
    name            text NOT NULL CHECK (length(name) <= 300),
    cause           text NOT NULL,
    severity        text NOT NULL CHECK (severity IN ('low', 'medium', 'high')),
    labels          jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
    detail          text NOT NULL CHECK (length(detail) <= 4000),
    job_id          uuid,
    execution_id    uuid,
    state           text NOT NULL CHECK (state IN ('open', 'acknowledged', 'resolved')),
    occurrences     integer NOT NULL DEFAULT 1 CHECK (occurrences >= 1),
    remind_every_ms bigint CHECK (remind_every_ms > 0),
    opened_at       timestamptz NOT NULL,
    changed_at      timestamptz NOT NULL,
    acknowledged_at timestamptz,
    acknowledged_by text,
    silenced_until  timestamptz,
    silenced_by     text,
    silence_reason  text,
    resolved_at     timestamptz,
    resolved_by     text,
    CHECK ((state = 'resolved') = (resolved_at IS NOT NULL))
) WITH (fillfactor = 80);
-- The guard against two open incidents of one subject.
CREATE UNIQUE INDEX incidents_open ON sexton.incidents (subject_kind, subject) WHERE state <> 'resolved';
-- The last incident of a subject: a silence that goes on, and one to open again.
CREATE INDEX incidents_of_subject ON sexton.incidents (subject_kind, subject, opened_at);
-- Lists, newest first.
CREATE INDEX incidents_by_time ON sexton.incidents (opened_at, id);
CREATE INDEX incidents_resolved ON sexton.incidents (resolved_at) WHERE state = 'resolved';
COMMENT ON TABLE sexton.incidents IS 'What is wrong, or was: at most one open incident for each subject.';
COMMENT ON COLUMN sexton.incidents.id IS 'UUID version 7.';
COMMENT ON COLUMN sexton.incidents.subject_kind IS 'job (its monitor), check (of a foreign job), group (of failures), platform or channel.';
COMMENT ON COLUMN sexton.incidents.subject IS 'The id of the job or check, the group''s fingerprint, the finding''s code, or the channel''s name.';
COMMENT ON COLUMN sexton.incidents.name IS 'The subject''s name for people, as it was when the incident opened.';
COMMENT ON COLUMN sexton.incidents.cause IS 'late, missed, too_long, failed, parked, never_ran, lock_held, reopened_group, or what the platform found.';
COMMENT ON COLUMN sexton.incidents.severity IS 'low, medium or high.';
COMMENT ON COLUMN sexton.incidents.labels IS 'The job''s labels, for routes.';
COMMENT ON COLUMN sexton.incidents.detail IS 'In words: what happened last.';
COMMENT ON COLUMN sexton.incidents.job_id IS 'The job; null: not about one. Without a foreign key: the incident outlives it.';
COMMENT ON COLUMN sexton.incidents.execution_id IS 'The execution that caused it last; null: not about one.';
COMMENT ON COLUMN sexton.incidents.state IS 'open, acknowledged or resolved.';
COMMENT ON COLUMN sexton.incidents.occurrences IS 'How often its cause has occurred.';
COMMENT ON COLUMN sexton.incidents.remind_every_ms IS 'Milliseconds between reminders while nobody has acknowledged it; null: none.';
COMMENT ON COLUMN sexton.incidents.opened_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.incidents.changed_at IS 'When its cause last occurred, or somebody last changed it.';
COMMENT ON COLUMN sexton.incidents.acknowledged_at IS 'When somebody took it on; null: nobody.';
COMMENT ON COLUMN sexton.incidents.acknowledged_by IS 'Who.';
COMMENT ON COLUMN sexton.incidents.silenced_until IS 'Until then nothing is sent about it, nor about a further incident of its subject; null: not silenced.';
COMMENT ON COLUMN sexton.incidents.silenced_by IS 'Who.';
COMMENT ON COLUMN sexton.incidents.silence_reason IS 'Why.';
COMMENT ON COLUMN sexton.incidents.resolved_at IS 'When it ended.';
COMMENT ON COLUMN sexton.incidents.resolved_by IS 'Who resolved it; sexton: its cause is gone.';

CREATE TABLE sexton.incident_events (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incident_id uuid NOT NULL REFERENCES sexton.incidents (id) ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    kind        text NOT NULL,
    actor       text,
    detail      text CHECK (length(detail) <= 4000)
);
CREATE INDEX incident_events_of ON sexton.incident_events (incident_id, id);
COMMENT ON TABLE sexton.incident_events IS 'The timeline of each incident: at most 200 violations and messages, 400 entries in all, and what people did.';
COMMENT ON COLUMN sexton.incident_events.id IS 'In the order in which they were recorded.';
COMMENT ON COLUMN sexton.incident_events.incident_id IS 'The incident.';
COMMENT ON COLUMN sexton.incident_events.at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.incident_events.kind IS 'opened, reopened, occurred, acknowledged, silenced, unsilenced, resolved, sent, parked or dropped.';
COMMENT ON COLUMN sexton.incident_events.actor IS 'Who did it; null: Sexton.';
COMMENT ON COLUMN sexton.incident_events.detail IS 'In words.';

-- Channels, routes and notifications

CREATE TABLE sexton.channels (
    name          text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,62}$'),
    kind          text NOT NULL CHECK (kind IN ('webhook', 'email', 'slack', 'pagerduty', 'alertmanager')),
    config        jsonb NOT NULL CHECK (jsonb_typeof(config) = 'object'),
    updated_at    timestamptz NOT NULL,
    failing_since timestamptz,
    failures      integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    next_send_at  timestamptz,
    last_error    text,
    last_sent_at  timestamptz
);
COMMENT ON TABLE sexton.channels IS 'Where notifications go. Secrets are references; a scheduler reads their values when it sends.';
COMMENT ON COLUMN sexton.channels.name IS 'Unique.';
COMMENT ON COLUMN sexton.channels.kind IS 'webhook, email, slack, pagerduty or alertmanager.';
COMMENT ON COLUMN sexton.channels.config IS 'Its settings, as the file has them.';
COMMENT ON COLUMN sexton.channels.updated_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.channels.failing_since IS 'Since when every send has failed; null: the last one arrived.';
COMMENT ON COLUMN sexton.channels.failures IS 'Sends that failed since then.';
COMMENT ON COLUMN sexton.channels.next_send_at IS 'Nothing is sent before this instant, because one is under way, sends fail, or they come too often; null: no limit.';
COMMENT ON COLUMN sexton.channels.last_error IS 'The last failure.';
COMMENT ON COLUMN sexton.channels.last_sent_at IS 'When it last accepted a message.';

CREATE TABLE sexton.routes (
    position       integer PRIMARY KEY CHECK (position >= 1),
    labels         jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
    severities     text[] NOT NULL DEFAULT '{}',
    channels       text[] NOT NULL CHECK (cardinality(channels) >= 1),
    escalate_ms    bigint CHECK (escalate_ms > 0),
    escalate_to    text[] NOT NULL DEFAULT '{}',
    CHECK ((escalate_ms IS NULL) = (escalate_to = '{}'))
);
COMMENT ON TABLE sexton.routes IS 'Which incidents go to which channels: each route that matches adds its channels.';
COMMENT ON COLUMN sexton.routes.position IS 'In the order of the file.';
COMMENT ON COLUMN sexton.routes.labels IS 'Labels that the incident must have; empty: any.';
COMMENT ON COLUMN sexton.routes.severities IS 'Severities that match; empty: all.';
COMMENT ON COLUMN sexton.routes.channels IS 'Names of channels.';
COMMENT ON COLUMN sexton.routes.escalate_ms IS 'Milliseconds after which escalate_to is notified as well, unless somebody acknowledged the incident; null: never.';
COMMENT ON COLUMN sexton.routes.escalate_to IS 'Names of channels.';

CREATE TABLE sexton.notifications (
    id            uuid PRIMARY KEY,
    incident_id   uuid REFERENCES sexton.incidents (id) ON DELETE CASCADE,
    channel       text NOT NULL,
    kind          text NOT NULL CHECK (kind IN
        ('opened', 'reopened', 'reminder', 'escalated', 'acknowledged', 'resolved', 'test')),
    detail        text NOT NULL CHECK (length(detail) <= 4000),
    created_at    timestamptz NOT NULL,
    due_at        timestamptz NOT NULL,
    state         text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'parked', 'dropped')),
    attempts      integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    first_sent_at timestamptz,
    digest        uuid,
    finished_at   timestamptz,
    last_error    text,
    CHECK ((state = 'pending') = (finished_at IS NULL))
) WITH (fillfactor = 70);
-- What is due, by channel.
CREATE INDEX notifications_due ON sexton.notifications (channel, due_at) WHERE state = 'pending';
-- How much a channel received lately, and retention.
CREATE INDEX notifications_finished ON sexton.notifications (channel, finished_at) WHERE state <> 'pending';
CREATE INDEX notifications_of_incident ON sexton.notifications (incident_id);
COMMENT ON TABLE sexton.notifications IS 'Messages about incidents, each for one channel; written together with what they report.';
COMMENT ON COLUMN sexton.notifications.id IS 'UUID version 7; the message''s id in each channel, the same over retries.';
COMMENT ON COLUMN sexton.notifications.incident_id IS 'The incident; null: a test of the channel.';
COMMENT ON COLUMN sexton.notifications.channel IS 'Name of the channel. Without a foreign key: a channel may be removed and come back.';
COMMENT ON COLUMN sexton.notifications.kind IS 'What it reports: opened, reopened, reminder, escalated, acknowledged, resolved or test.';
COMMENT ON COLUMN sexton.notifications.detail IS 'In words, as it was when it was written.';
COMMENT ON COLUMN sexton.notifications.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.notifications.due_at IS 'It is not sent before this instant; after a failure, the next try.';
COMMENT ON COLUMN sexton.notifications.state IS 'pending, sent, parked (three days of failures) or dropped (nobody needs it any more).';
COMMENT ON COLUMN sexton.notifications.attempts IS 'How often it was sent, or tried.';
COMMENT ON COLUMN sexton.notifications.first_sent_at IS 'When it was first tried; null: not yet.';
COMMENT ON COLUMN sexton.notifications.digest IS 'The message in which it was sent together with others; null: alone.';
COMMENT ON COLUMN sexton.notifications.finished_at IS 'When it was sent, parked or dropped; null while pending.';
COMMENT ON COLUMN sexton.notifications.last_error IS 'The last failure.';
