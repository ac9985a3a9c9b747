-- Everything that Sexton keeps in PostgreSQL (13 or later), in the schema `sexton`. Nothing is created anywhere else,
-- so the platform can live in the database of an application, whose own `jobs` it never sees.
--
-- Every name is qualified: no statement depends on the session's search_path, which a pooler may drop and which a task
-- in SQL sets for itself. Functions pin theirs.
--
-- Which move leads from which state of an execution to which is decided by one table in `shared/model/src/state.rs`.
-- The CHECKs here repeat which states there are and what a row must hold in each of them.
--
-- `sexton migrate` creates the schema before it applies this file, unless the database's owner did. CREATE SCHEMA IF NOT
-- EXISTS here would ask for a right on the database also where the schema is there.

-- Jobs

CREATE TABLE sexton.jobs (
    id                   uuid PRIMARY KEY,
    name                 text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    description          text NOT NULL DEFAULT '',
    target               text,
    task_type            text NOT NULL,
    params               jsonb NOT NULL CHECK (jsonb_typeof(params) = 'object'),
    pool                 text NOT NULL,
    labels               jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
    lock_key             bigint,
    idempotency_template text,
    verify_task          text,
    -- When it fires.
    schedule_kind        text NOT NULL CHECK (schedule_kind IN ('cron', 'every', 'once', 'none')),
    schedule_expression  text,
    timezone             text NOT NULL DEFAULT 'UTC',
    dst                  text NOT NULL DEFAULT 'vixie' CHECK (dst IN ('vixie', 'skip', 'wall')),
    start_at             text,
    end_at               text,
    exclude              text[] NOT NULL DEFAULT '{}',
    jitter_ms            bigint CHECK (jitter_ms > 0),
    max_runs             integer CHECK (max_runs > 0),
    -- What becomes of a firing.
    overlap              text NOT NULL CHECK (overlap IN ('allow', 'skip', 'queue', 'replace')),
    misfire_policy       text NOT NULL CHECK (misfire_policy IN ('skip', 'fire_once', 'fire_all')),
    misfire_window_ms    bigint NOT NULL CHECK (misfire_window_ms >= 0),
    misfire_limit        integer NOT NULL CHECK (misfire_limit >= 1),
    misfire_rate         text CHECK (misfire_rate ~ '^[1-9][0-9]{0,5}/[smhd]$'),
    stale_after_ms       bigint CHECK (stale_after_ms > 0),
    expect_within_ms     bigint CHECK (expect_within_ms > 0),
    -- How an attempt runs, and what follows one that failed.
    timeout_ms           bigint NOT NULL CHECK (timeout_ms > 0),
    lease_ms             bigint CHECK (lease_ms > 0),
    max_retries          integer CHECK (max_retries >= 0),
    retry_delay_ms       bigint CHECK (retry_delay_ms >= 0),
    retry_multiplier     double precision CHECK (retry_multiplier >= 1),
    retry_max_delay_ms   bigint CHECK (retry_max_delay_ms >= 0),
    retry_jitter         double precision CHECK (retry_jitter BETWEEN 0 AND 1),
    max_timeouts         integer CHECK (max_timeouts BETWEEN 1 AND 1000),
    max_crashes          integer CHECK (max_crashes BETWEEN 1 AND 1000),
    permanent_classes    text[] CHECK (cardinality(permanent_classes) <= 50),
    pause_after_failures integer CHECK (pause_after_failures BETWEEN 1 AND 100),
    -- How far its firings are planned.
    next_fire_at         timestamptz,
    next_nominal_at      timestamptz,
    planned_until        timestamptz,
    tz_version           text,
    runs_used            integer NOT NULL DEFAULT 0 CHECK (runs_used >= 0),
    failures_since       timestamptz,
    -- What operators did to it.
    status               text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused')),
    paused_by            text,
    paused_why           text,
    paused_at            timestamptz,
    deleted_at           timestamptz,
    deleted_name         text,
    revision             integer NOT NULL DEFAULT 1,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    applied_at           timestamptz,
    CHECK ((schedule_kind = 'none') = (schedule_expression IS NULL)),
    CHECK ((status = 'paused') = (paused_at IS NOT NULL)),
    -- A deleted job takes a name that no job can have, so its former name is free, and nothing finds, fires or resumes it.
    CONSTRAINT jobs_deleted CHECK (
        (deleted_at IS NULL) = (deleted_name IS NULL)
        AND (deleted_at IS NULL OR (status = 'paused' AND next_fire_at IS NULL AND name LIKE '~%')))
);
-- The planner asks which jobs are due; nothing else uses this index.
CREATE INDEX jobs_due ON sexton.jobs (next_fire_at) WHERE status = 'active' AND next_fire_at IS NOT NULL;
-- Once an hour a scheduler asks which cursors were computed with older time zone data, in this order. Nearly always
-- there are none.
CREATE INDEX jobs_zone_data ON sexton.jobs (coalesce(tz_version, '') COLLATE "C", id)
    WHERE schedule_kind IN ('cron', 'once') AND timezone <> 'UTC'
        AND next_fire_at IS NOT NULL AND planned_until IS NOT NULL;
-- A worker counts the jobs of foreign tasks before it makes another one, and there may be a million other jobs.
CREATE INDEX jobs_foreign ON sexton.jobs (name) WHERE starts_with(name, 'foreign.');

COMMENT ON TABLE sexton.jobs IS 'Definitions: what runs, when, and by which policies.';
COMMENT ON COLUMN sexton.jobs.id IS 'UUID version 7, drawn when the job is first applied; kept over changes.';
COMMENT ON COLUMN sexton.jobs.name IS 'Unique; <service>.<jobName> by convention; foreign.<type> for tasks that other programs publish, verify.<type> for verify tasks; ~<id> once deleted.';
COMMENT ON COLUMN sexton.jobs.description IS 'For people.';
COMMENT ON COLUMN sexton.jobs.target IS 'The id of the report, customer or reminder that the job is about; passed on to each attempt.';
COMMENT ON COLUMN sexton.jobs.task_type IS 'The word that a worker looks up in its catalogue.';
COMMENT ON COLUMN sexton.jobs.params IS 'JSON object that each attempt receives; at most 256 KiB.';
COMMENT ON COLUMN sexton.jobs.pool IS 'The worker pool that runs it.';
COMMENT ON COLUMN sexton.jobs.labels IS 'The owner''s own words, text to text.';
COMMENT ON COLUMN sexton.jobs.lock_key IS 'A number by which other systems know the job.';
COMMENT ON COLUMN sexton.jobs.idempotency_template IS 'With {job} and {execution_key}; null: <job>:<execution_key>.';
COMMENT ON COLUMN sexton.jobs.verify_task IS 'The task type that says, before a requeue, whether the effect of a failed execution has happened; null: none.';
COMMENT ON COLUMN sexton.jobs.schedule_kind IS 'cron, every, once or none.';
COMMENT ON COLUMN sexton.jobs.schedule_expression IS 'The cron text, the period as a duration (15m, with a phase 15m+5m), or the instant in RFC 3339 (without an offset: in the job''s zone); null for none.';
COMMENT ON COLUMN sexton.jobs.timezone IS 'IANA name of the zone in which the schedule, start_at, end_at and exclude are read.';
COMMENT ON COLUMN sexton.jobs.dst IS 'How a clock change moves fixed times of the day: vixie, skip or wall.';
COMMENT ON COLUMN sexton.jobs.start_at IS 'RFC 3339, without an offset in the job''s zone: no firing comes before it; null: no bound.';
COMMENT ON COLUMN sexton.jobs.end_at IS 'RFC 3339, without an offset in the job''s zone: no firing comes after it; null: no bound.';
COMMENT ON COLUMN sexton.jobs.exclude IS 'Days of the job''s zone, 2026-12-25 or 2026-12-24..2026-12-26, whose firings are not executed.';
COMMENT ON COLUMN sexton.jobs.jitter_ms IS 'Milliseconds; a firing becomes due less than this after its nominal time; null: at it.';
COMMENT ON COLUMN sexton.jobs.max_runs IS 'The most firings that are claimed to run; null: any number.';
COMMENT ON COLUMN sexton.jobs.overlap IS 'What a firing does while an earlier execution is under way: allow, skip, queue or replace.';
COMMENT ON COLUMN sexton.jobs.misfire_policy IS 'Which misfires run: skip, fire_once or fire_all.';
COMMENT ON COLUMN sexton.jobs.misfire_window_ms IS 'Milliseconds; a firing that is older never runs.';
COMMENT ON COLUMN sexton.jobs.misfire_limit IS 'The most late firings that fire_all claims for one absence.';
COMMENT ON COLUMN sexton.jobs.misfire_rate IS 'How fast late firings begin with fire_all, such as 10/m: firings, and s, m, h or d; null: all at once.';
COMMENT ON COLUMN sexton.jobs.stale_after_ms IS 'Milliseconds after its nominal time from which a firing that no worker has opened is skipped; null: never.';
COMMENT ON COLUMN sexton.jobs.expect_within_ms IS 'Milliseconds after the nominal time by which success is expected; null: no expectation.';
COMMENT ON COLUMN sexton.jobs.timeout_ms IS 'Milliseconds; the longest run of one attempt.';
COMMENT ON COLUMN sexton.jobs.lease_ms IS 'Milliseconds without a renewal until an attempt counts as lost; null: the worker''s LEASE_MS.';
COMMENT ON COLUMN sexton.jobs.max_retries IS 'Retries after the first attempt; null: the default of the process that settles.';
COMMENT ON COLUMN sexton.jobs.retry_delay_ms IS 'Milliseconds before the first retry; null: default.';
COMMENT ON COLUMN sexton.jobs.retry_multiplier IS 'Factor from one delay to the next; null: default.';
COMMENT ON COLUMN sexton.jobs.retry_max_delay_ms IS 'Milliseconds; the longest delay; null: default.';
COMMENT ON COLUMN sexton.jobs.retry_jitter IS 'Fraction by which a delay varies; null: default.';
COMMENT ON COLUMN sexton.jobs.max_timeouts IS 'The number of timed-out attempts that parks the execution; null: the worker''s default.';
COMMENT ON COLUMN sexton.jobs.max_crashes IS 'The number of crashed attempts (lost, out of memory) that parks the execution; null: the worker''s default.';
COMMENT ON COLUMN sexton.jobs.permanent_classes IS 'Error classes that are not retried; null: those of the worker''s catalogue.';
COMMENT ON COLUMN sexton.jobs.pause_after_failures IS 'The number of executions failed in a row that pauses the job; null: never.';
COMMENT ON COLUMN sexton.jobs.next_fire_at IS 'When the next firing that is not claimed yet becomes due; null: never again by itself.';
COMMENT ON COLUMN sexton.jobs.next_nominal_at IS 'Nominal time of the firing that is due at next_fire_at, where jitter makes that later; null: the same instant.';
COMMENT ON COLUMN sexton.jobs.planned_until IS 'The next firing is the first whose nominal time is after this instant; for schedule_kind once, the earliest instant at which it was due; null: not known.';
COMMENT ON COLUMN sexton.jobs.tz_version IS 'Release of the time zone data (2025b) with which next_fire_at was computed; null: not known.';
COMMENT ON COLUMN sexton.jobs.runs_used IS 'Firings claimed to run since max_runs was set; 0 without it.';
COMMENT ON COLUMN sexton.jobs.failures_since IS 'Only executions that ended after this instant (the last resume) count for pause_after_failures; null: all.';
COMMENT ON COLUMN sexton.jobs.status IS 'active or paused.';
COMMENT ON COLUMN sexton.jobs.paused_by IS 'Who paused it.';
COMMENT ON COLUMN sexton.jobs.paused_why IS 'The reason given.';
COMMENT ON COLUMN sexton.jobs.paused_at IS 'When it was paused; null while active.';
COMMENT ON COLUMN sexton.jobs.deleted_at IS 'When it was deleted; its rows stay. Null: it was not.';
COMMENT ON COLUMN sexton.jobs.deleted_name IS 'The name that it had before it was deleted; null: it was not.';
COMMENT ON COLUMN sexton.jobs.revision IS 'Plus one at each change of the definition.';
COMMENT ON COLUMN sexton.jobs.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.jobs.updated_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.jobs.applied_at IS 'For a one-shot job that has fired: when a job file last listed it, to within a day; null: not since updated_at.';

CREATE TABLE sexton.job_revisions (
    job_id     uuid NOT NULL REFERENCES sexton.jobs (id) ON DELETE CASCADE,
    revision   integer NOT NULL,
    valid_from timestamptz NOT NULL,
    definition jsonb NOT NULL,
    PRIMARY KEY (job_id, revision)
);

COMMENT ON TABLE sexton.job_revisions IS 'Schedule and policies of a job over time: one row for each revision, in force until the next one begins.';
COMMENT ON COLUMN sexton.job_revisions.job_id IS 'The job.';
COMMENT ON COLUMN sexton.job_revisions.revision IS 'jobs.revision.';
COMMENT ON COLUMN sexton.job_revisions.valid_from IS 'Firings after this instant belong to this revision; by the database''s clock.';
COMMENT ON COLUMN sexton.job_revisions.definition IS 'Schedule and policies, by the names of the columns of jobs.';

-- A trigger records revisions, so that a change made by hand is recorded as well. A claim moves only the cursor, and
-- never comes here.
CREATE FUNCTION sexton.record_job_revision() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO sexton.job_revisions (job_id, revision, valid_from, definition)
    VALUES (NEW.id, NEW.revision, NEW.updated_at, to_jsonb(NEW) - ARRAY[
        'id', 'name', 'description', 'target', 'params', 'labels', 'status', 'paused_by', 'paused_why',
        'paused_at', 'next_fire_at', 'planned_until', 'tz_version', 'revision', 'created_at',
        'updated_at', 'failures_since', 'deleted_at', 'deleted_name', 'next_nominal_at', 'runs_used',
        'applied_at'])
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER record_new_job AFTER INSERT ON sexton.jobs
    FOR EACH ROW EXECUTE FUNCTION sexton.record_job_revision();
CREATE TRIGGER record_changed_job AFTER UPDATE OF revision ON sexton.jobs
    FOR EACH ROW WHEN (OLD.revision IS DISTINCT FROM NEW.revision) EXECUTE FUNCTION sexton.record_job_revision();

-- Executions

CREATE TABLE sexton.executions (
    id                  uuid PRIMARY KEY,
    job_id              uuid NOT NULL REFERENCES sexton.jobs (id),
    execution_key       text NOT NULL CHECK (length(execution_key) BETWEEN 1 AND 256),
    own_key             boolean NOT NULL DEFAULT false,
    scheduled_for       timestamptz NOT NULL,
    state               text NOT NULL,
    attempt             integer NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    rev                 integer NOT NULL DEFAULT 1,
    -- As claimed.
    task_type           text NOT NULL,
    pool                text NOT NULL,
    target              text,
    params              jsonb NOT NULL,
    idempotency_key     text NOT NULL,
    claimed_by          text NOT NULL,
    claimed_at          timestamptz NOT NULL,
    tz_version          text,
    backfill            bigint,
    overlap_override    text,
    asks_about          uuid,
    -- The ticket.
    ticket_published_at timestamptz,
    relay_after         timestamptz NOT NULL,
    next_attempt_at     timestamptz,
    reconcile_count     smallint NOT NULL DEFAULT 0,
    waits               text,
    admitted_at         timestamptz,
    replaced_by         uuid,
    -- Budgets.
    retries_used        integer NOT NULL DEFAULT 0,
    timeouts_used       integer NOT NULL DEFAULT 0,
    crashes_used        integer NOT NULL DEFAULT 0,
    max_crashes         integer,
    snoozes_used        integer NOT NULL DEFAULT 0,
    -- The open attempt.
    worker_id           uuid,
    open_token          uuid,
    lease_until         timestamptz,
    cancel_requested    boolean NOT NULL DEFAULT false,
    -- The end.
    started_at          timestamptz,
    finished_at         timestamptz,
    outcome             text,
    result              jsonb,
    error_class         text,
    error_message       text,
    fingerprint         text,
    skip_reason         text,
    UNIQUE (job_id, execution_key),
    CONSTRAINT executions_state CHECK (state IN
        ('pending', 'running', 'retrying', 'failed', 'discarded', 'succeeded', 'cancelled', 'skipped')),
    CONSTRAINT executions_running CHECK (
        (state = 'running') = (open_token IS NOT NULL AND lease_until IS NOT NULL AND worker_id IS NOT NULL)
        AND (state = 'running' OR (open_token IS NULL AND lease_until IS NULL AND worker_id IS NULL))),
    CONSTRAINT executions_due CHECK (
        (state IN ('pending', 'retrying')) = (next_attempt_at IS NOT NULL)),
    CONSTRAINT executions_finished CHECK (
        (state IN ('failed', 'discarded', 'succeeded', 'cancelled', 'skipped')) = (finished_at IS NOT NULL)),
    CONSTRAINT executions_skipped CHECK ((state = 'skipped') = (skip_reason IS NOT NULL)),
    CONSTRAINT executions_result CHECK (result IS NULL OR state = 'succeeded'),
    CONSTRAINT executions_budgets CHECK (timeouts_used >= 0 AND max_crashes >= 1),
    CONSTRAINT executions_snoozes CHECK (snoozes_used >= 0),
    CONSTRAINT executions_waits CHECK (waits IN ('queue', 'replace', 'turn')),
    CONSTRAINT executions_admitted CHECK (admitted_at IS NULL OR waits IS NOT NULL),
    -- A fence: an execution that was replaced cannot succeed, so what its task did in the transaction of its settlement
    -- is rolled back.
    CONSTRAINT executions_replaced CHECK (replaced_by IS NULL OR state IN ('running', 'cancelled')),
    CONSTRAINT executions_overlap_override CHECK (overlap_override IN ('allow'))
) WITH (
    -- A row is rewritten about five times in its first minutes, and a running one every few seconds: room on its page
    -- keeps the renewals HOT. Vacuum follows the rows that change, not the millions that rest.
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);
-- Unpublished tickets by destination, those that are due first: the relay.
CREATE INDEX executions_unpublished ON sexton.executions (pool, state, relay_after, scheduled_for, id)
    WHERE ticket_published_at IS NULL AND state IN ('pending', 'retrying', 'failed');
-- Unpublished tickets by nominal time: `sexton status`, which counts all of them, and the look for waiters, whose
-- tickets are unpublished.
CREATE INDEX executions_unpublished_nominal ON sexton.executions (scheduled_for, id)
    WHERE ticket_published_at IS NULL AND state IN ('pending', 'retrying', 'failed');
-- The rescuer. On the id, not on lease_until: an index on a column that a renewal writes would keep it from being HOT.
CREATE INDEX executions_running ON sexton.executions (id) WHERE state = 'running';
-- Tickets that may be opened, the oldest due first: reconcile, status.
CREATE INDEX executions_waiting ON sexton.executions (next_attempt_at) WHERE state IN ('pending', 'retrying');
-- Overlap: is an earlier execution of the job under way?
CREATE INDEX executions_under_way ON sexton.executions (job_id) WHERE state IN ('pending', 'running', 'retrying');
-- Executions of a job, newest first, for people; without it PostgreSQL looks for those of a job that never ran in the
-- whole table. `claimed_at` never changes, so a row enters the index once and its renewals stay HOT.
CREATE INDEX executions_of_job ON sexton.executions (job_id, claimed_at);
-- Failed executions, by when they failed.
CREATE INDEX executions_failed ON sexton.executions (finished_at, id) WHERE state = 'failed';
-- Retention: ended executions by when they ended. Those that a caller's own key keeps for longer stand apart, so that
-- none of them lies before one that can go. A row enters the index once, at its end.
CREATE INDEX executions_ended ON sexton.executions (own_key, finished_at, id)
    WHERE state IN ('succeeded', 'cancelled', 'skipped', 'discarded');

COMMENT ON TABLE sexton.executions IS 'The durable unit of work, from claim to a final state. The rows are the record; the broker only delivers.';
COMMENT ON COLUMN sexton.executions.id IS 'UUID version 7; the message id of its tickets.';
COMMENT ON COLUMN sexton.executions.job_id IS 'The job whose firing it is.';
COMMENT ON COLUMN sexton.executions.execution_key IS 'Unique for the job: cron-…, every-…, once-…, or a caller''s own.';
COMMENT ON COLUMN sexton.executions.own_key IS 'Whether a caller chose the key: retention then keeps the row, stripped, so that the key stays taken.';
COMMENT ON COLUMN sexton.executions.scheduled_for IS 'The nominal time; for a trigger, when it was triggered.';
COMMENT ON COLUMN sexton.executions.state IS 'See the transition table in shared/model/src/state.rs.';
COMMENT ON COLUMN sexton.executions.attempt IS 'Number of the one attempt that may be opened next or is open now: the fence.';
COMMENT ON COLUMN sexton.executions.rev IS 'Plus one at each transition and each time its ticket becomes unpublished; guards the mark of a publish.';
COMMENT ON COLUMN sexton.executions.task_type IS 'As claimed.';
COMMENT ON COLUMN sexton.executions.pool IS 'As claimed.';
COMMENT ON COLUMN sexton.executions.target IS 'As claimed.';
COMMENT ON COLUMN sexton.executions.params IS 'As claimed.';
COMMENT ON COLUMN sexton.executions.idempotency_key IS 'The same over retries and requeues.';
COMMENT ON COLUMN sexton.executions.claimed_by IS '<instance>:<pid> of the process that inserted the row; for a trigger <user>@<host>:<pid> of the caller.';
COMMENT ON COLUMN sexton.executions.claimed_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.executions.tz_version IS 'Release of the time zone data with which its firing was computed; null: no firing.';
COMMENT ON COLUMN sexton.executions.backfill IS 'operator_actions.id of the backfill that claimed it; null: claimed otherwise.';
COMMENT ON COLUMN sexton.executions.overlap_override IS 'allow: it neither waits for others of its job nor counts as under way for them; null: the job''s policy.';
COMMENT ON COLUMN sexton.executions.asks_about IS 'For a verify task, the failed execution whose effect it looks for. Without a foreign key: it may outlive that one. Null: no verify task.';
COMMENT ON COLUMN sexton.executions.ticket_published_at IS 'When the broker confirmed the row''s current ticket; null: unpublished.';
COMMENT ON COLUMN sexton.executions.relay_after IS 'The relay does not publish the ticket before this instant; far in the future while the execution waits for its job.';
COMMENT ON COLUMN sexton.executions.next_attempt_at IS 'No worker opens the ticket before this instant; null unless pending or retrying.';
COMMENT ON COLUMN sexton.executions.reconcile_count IS 'How often reconcile published the ticket again; each time doubles the wait before the next.';
COMMENT ON COLUMN sexton.executions.waits IS 'Why its ticket was held back until the job was free: queue, replace, or turn (a person triggered it); null: it was not.';
COMMENT ON COLUMN sexton.executions.admitted_at IS 'When its job was free for it; null: it still waits, or never waited.';
COMMENT ON COLUMN sexton.executions.replaced_by IS 'The execution of a newer firing that took its place. Without a foreign key: that one may be removed first.';
COMMENT ON COLUMN sexton.executions.retries_used IS 'Since the claim or the last requeue.';
COMMENT ON COLUMN sexton.executions.timeouts_used IS 'Since the claim or the last requeue.';
COMMENT ON COLUMN sexton.executions.crashes_used IS 'Since the claim or the last requeue.';
COMMENT ON COLUMN sexton.executions.max_crashes IS 'The crash budget at the last open, for the process that finds the attempt lost; null: never opened.';
COMMENT ON COLUMN sexton.executions.snoozes_used IS 'Attempts that ended in a snooze since the claim or the last requeue; they cost no budget, and are bounded.';
COMMENT ON COLUMN sexton.executions.worker_id IS 'The worker process that holds the open attempt; null unless running.';
COMMENT ON COLUMN sexton.executions.open_token IS 'That worker''s mark on the open attempt; null unless running.';
COMMENT ON COLUMN sexton.executions.lease_until IS 'End of the open attempt''s lease by the database''s clock, as the last renewal wrote it; null unless running. It tells one renewal from the next: an attempt is lost when nobody has seen a new renewal for the lease''s length.';
COMMENT ON COLUMN sexton.executions.cancel_requested IS 'Whether an operator cancelled the open attempt.';
COMMENT ON COLUMN sexton.executions.started_at IS 'When the last attempt was opened.';
COMMENT ON COLUMN sexton.executions.finished_at IS 'When it ended, was parked or was discarded; null while under way.';
COMMENT ON COLUMN sexton.executions.outcome IS 'How the last attempt ended, or replaced.';
COMMENT ON COLUMN sexton.executions.result IS 'Of the attempt that succeeded; at most 64 KiB of JSON. Null: none, or not succeeded.';
COMMENT ON COLUMN sexton.executions.error_class IS 'Of the last attempt that failed; a word.';
COMMENT ON COLUMN sexton.executions.error_message IS 'Of the last attempt that failed; at most 2,000 bytes.';
COMMENT ON COLUMN sexton.executions.fingerprint IS 'Of the failure for which it is parked: 16 hexadecimal digits, see shared/model/src/fingerprint.rs; null: not parked, or not computed yet.';
COMMENT ON COLUMN sexton.executions.skip_reason IS 'Why it does not run; null unless skipped.';

CREATE TABLE sexton.attempts (
    -- Not a foreign key: it would cost each open a query, for a row that the same statement has locked and changed.
    execution_id  uuid NOT NULL,
    number        integer NOT NULL CHECK (number >= 1),
    worker_id     uuid NOT NULL,
    lease_ms      bigint,
    opened_at     timestamptz NOT NULL,
    finished_at   timestamptz,
    outcome       text,
    error_class   text,
    error_message text,
    exit_code     integer,
    signal        integer,
    result        jsonb,
    progress      jsonb,
    output        jsonb,
    late_outcome  text,
    late_at       timestamptz,
    PRIMARY KEY (execution_id, number),
    CHECK ((finished_at IS NULL) = (outcome IS NULL)),
    CHECK ((late_at IS NULL) = (late_outcome IS NULL))
) WITH (fillfactor = 80);

COMMENT ON TABLE sexton.attempts IS 'One row for each attempt; its primary key is why an attempt is opened at most once.';
COMMENT ON COLUMN sexton.attempts.execution_id IS 'The execution; a trigger removes its attempts with it.';
COMMENT ON COLUMN sexton.attempts.number IS '1, 2, 3 … over the execution''s whole life.';
COMMENT ON COLUMN sexton.attempts.worker_id IS 'The worker process that opened it.';
COMMENT ON COLUMN sexton.attempts.lease_ms IS 'Milliseconds for which one renewal of the attempt lasts, as its worker opened it; null: not known.';
COMMENT ON COLUMN sexton.attempts.opened_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.attempts.finished_at IS 'When its outcome was recorded.';
COMMENT ON COLUMN sexton.attempts.outcome IS 'succeeded, error, permanent, timeout, signal, out_of_memory, lost, cancelled, replaced, interrupted or snoozed.';
COMMENT ON COLUMN sexton.attempts.error_class IS 'A word.';
COMMENT ON COLUMN sexton.attempts.error_message IS 'At most 2,000 bytes.';
COMMENT ON COLUMN sexton.attempts.exit_code IS 'Exit status of the task''s process.';
COMMENT ON COLUMN sexton.attempts.signal IS 'Number of the signal that ended the task''s process.';
COMMENT ON COLUMN sexton.attempts.result IS 'What its task returned; at most 64 KiB of JSON. Null: nothing, or it did not end by itself.';
COMMENT ON COLUMN sexton.attempts.progress IS 'The task''s last progress line: percent (0 to 100), values, at (worker''s clock). Null: none.';
COMMENT ON COLUMN sexton.attempts.output IS 'Not written any more: attempt_output holds what an attempt wrote.';
COMMENT ON COLUMN sexton.attempts.late_outcome IS 'What its worker wanted to record after the attempt had been ended as lost.';
COMMENT ON COLUMN sexton.attempts.late_at IS 'When the worker wanted to record that.';

CREATE FUNCTION sexton.delete_attempts() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM sexton.attempts a USING gone WHERE a.execution_id = gone.id;
    RETURN NULL;
END $$;
CREATE TRIGGER delete_attempts AFTER DELETE ON sexton.executions REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.delete_attempts();

CREATE TABLE sexton.attempt_output (
    execution_id uuid NOT NULL,
    number       integer NOT NULL,
    first_line   bigint NOT NULL CHECK (first_line >= 1),
    lines        bigint NOT NULL CHECK (lines >= 1),
    bytes_before bigint NOT NULL CHECK (bytes_before >= 0),
    bytes        bigint NOT NULL CHECK (bytes >= 0),
    from_at      timestamptz NOT NULL,
    to_at        timestamptz NOT NULL,
    content      text NOT NULL,
    PRIMARY KEY (execution_id, number, first_line),
    FOREIGN KEY (execution_id, number) REFERENCES sexton.attempts (execution_id, number) ON DELETE CASCADE,
    CHECK (from_at <= to_at)
) WITH (
    -- Rows are never rewritten, so pages are filled. Chunks of a task that writes without end are deleted after a second
    -- or two, so vacuum comes often, and looks at the few pages that changed.
    fillfactor = 100,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 500,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 500
);

COMMENT ON TABLE sexton.attempt_output IS 'What attempts wrote: chunks of consecutive lines, head and tail. Lines in no chunk were not kept.';
COMMENT ON COLUMN sexton.attempt_output.execution_id IS 'The execution.';
COMMENT ON COLUMN sexton.attempt_output.number IS 'The attempt''s number.';
COMMENT ON COLUMN sexton.attempt_output.first_line IS 'Number of its first line, from 1 over all that the attempt wrote.';
COMMENT ON COLUMN sexton.attempt_output.lines IS 'How many lines it holds.';
COMMENT ON COLUMN sexton.attempt_output.bytes_before IS 'Bytes that the attempt had written before it, line ends included.';
COMMENT ON COLUMN sexton.attempt_output.bytes IS 'Bytes of its lines as the attempt wrote them.';
COMMENT ON COLUMN sexton.attempt_output.from_at IS 'When its earliest line was read, by the worker''s clock.';
COMMENT ON COLUMN sexton.attempt_output.to_at IS 'When its latest line was read, by the worker''s clock.';
COMMENT ON COLUMN sexton.attempt_output.content IS 'Lines, each: o (stdout) or e (stderr), milliseconds after from_at, a blank, the text.';

-- Firings that do not run, and catch-up

CREATE TABLE sexton.gaps (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id       uuid NOT NULL REFERENCES sexton.jobs (id),
    first_firing timestamptz NOT NULL,
    last_firing  timestamptz NOT NULL,
    count        integer NOT NULL CHECK (count >= 1),
    reason       text NOT NULL,
    actor        text,
    why          text,
    into_key     text,
    recorded_at  timestamptz NOT NULL,
    CHECK (first_firing <= last_firing)
);
CREATE INDEX gaps_of_job ON sexton.gaps (job_id, first_firing);

COMMENT ON TABLE sexton.gaps IS 'Runs of consecutive firings that were not executed.';
COMMENT ON COLUMN sexton.gaps.id IS 'Serial.';
COMMENT ON COLUMN sexton.gaps.job_id IS 'The job.';
COMMENT ON COLUMN sexton.gaps.first_firing IS 'Nominal time of the first.';
COMMENT ON COLUMN sexton.gaps.last_firing IS 'Nominal time of the last.';
COMMENT ON COLUMN sexton.gaps.count IS 'How many, both included.';
COMMENT ON COLUMN sexton.gaps.reason IS 'Why, as a word.';
COMMENT ON COLUMN sexton.gaps.actor IS 'Who paused, changed or deleted the job, where that is the reason; null: nobody.';
COMMENT ON COLUMN sexton.gaps.why IS 'The reason that the actor gave; null: none.';
COMMENT ON COLUMN sexton.gaps.into_key IS 'For coalesced firings, the execution key of the one that ran for them; null: not known when the gap was recorded.';
COMMENT ON COLUMN sexton.gaps.recorded_at IS 'By the database''s clock.';

-- One row, or none before the first planner looks.
CREATE TABLE sexton.planner_clock (
    is_one  boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

COMMENT ON TABLE sexton.planner_clock IS 'The last instant at which a planner read the database''s clock: a jump of the clock is measured from it.';
COMMENT ON COLUMN sexton.planner_clock.is_one IS 'Always true: there is one row.';
COMMENT ON COLUMN sexton.planner_clock.seen_at IS 'By the database''s clock; a few seconds old at most while a planner runs.';

CREATE TABLE sexton.holds (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reason      text NOT NULL CHECK (reason IN ('forward', 'backward')),
    last_seen   timestamptz NOT NULL,
    noticed_at  timestamptz NOT NULL,
    noticed_by  text NOT NULL,
    released_at timestamptz,
    released_by text,
    released_as text CHECK (released_as IN ('released', 'discarded')),
    why         text,
    CHECK ((released_at IS NULL) = (released_by IS NULL) AND (released_at IS NULL) = (released_as IS NULL))
);
-- The guard against two holds at once.
CREATE UNIQUE INDEX holds_open ON sexton.holds ((true)) WHERE released_at IS NULL;

COMMENT ON TABLE sexton.holds IS 'Times in which catch-up waits for an operator, since the database''s clock has jumped. At most one is open.';
COMMENT ON COLUMN sexton.holds.id IS 'Serial.';
COMMENT ON COLUMN sexton.holds.reason IS 'How the database''s clock jumped: forward or backward.';
COMMENT ON COLUMN sexton.holds.last_seen IS 'planner_clock.seen_at before the jump.';
COMMENT ON COLUMN sexton.holds.noticed_at IS 'The database''s clock after the jump.';
COMMENT ON COLUMN sexton.holds.noticed_by IS 'The scheduler that noticed it, as <instance>:<pid>.';
COMMENT ON COLUMN sexton.holds.released_at IS 'When an operator ended it; null: it is open.';
COMMENT ON COLUMN sexton.holds.released_by IS 'That operator.';
COMMENT ON COLUMN sexton.holds.released_as IS 'released: the jobs'' policies judged the held firings; discarded: they became gaps.';
COMMENT ON COLUMN sexton.holds.why IS 'The operator''s reason, if given.';

CREATE TABLE sexton.held_firings (
    job_id       uuid NOT NULL REFERENCES sexton.jobs (id) ON DELETE CASCADE,
    first_firing timestamptz NOT NULL,
    last_firing  timestamptz NOT NULL,
    count        integer NOT NULL CHECK (count >= 1),
    held_at      timestamptz NOT NULL,
    PRIMARY KEY (job_id, first_firing),
    CHECK (first_firing <= last_firing)
);

COMMENT ON TABLE sexton.held_firings IS 'Runs of late firings that a hold keeps back. A release or a discard deletes them.';
COMMENT ON COLUMN sexton.held_firings.job_id IS 'The job.';
COMMENT ON COLUMN sexton.held_firings.first_firing IS 'Nominal time of the first.';
COMMENT ON COLUMN sexton.held_firings.last_firing IS 'Nominal time of the last.';
COMMENT ON COLUMN sexton.held_firings.count IS 'How many, both included.';
COMMENT ON COLUMN sexton.held_firings.held_at IS 'When the planner held them, by the database''s clock: a release judges how late they are as of this instant.';

-- Processes

CREATE TABLE sexton.instances (
    id             uuid PRIMARY KEY,
    kind           text NOT NULL CHECK (kind IN ('scheduler', 'worker')),
    name           text NOT NULL,
    pid            integer NOT NULL,
    version        text NOT NULL,
    tz_version     text,
    pools          text[] NOT NULL DEFAULT '{}',
    slots          integer NOT NULL DEFAULT 0,
    pool_slots     integer[],
    db_connections integer CHECK (db_connections >= 1),
    instance_lock  uuid,
    started_at     timestamptz NOT NULL,
    heartbeat_at   timestamptz NOT NULL,
    ready          boolean NOT NULL DEFAULT false,
    stopped_at     timestamptz
);
-- A worker that takes an instance lock looks for the processes that held it before.
CREATE INDEX instances_lock ON sexton.instances (instance_lock)
    WHERE instance_lock IS NOT NULL AND stopped_at IS NULL;

COMMENT ON TABLE sexton.instances IS 'Scheduler and worker processes, one row for each start.';
COMMENT ON COLUMN sexton.instances.id IS 'Drawn at the process''s start; executions.worker_id.';
COMMENT ON COLUMN sexton.instances.kind IS 'scheduler or worker.';
COMMENT ON COLUMN sexton.instances.name IS 'SEXTON_INSTANCE.';
COMMENT ON COLUMN sexton.instances.pid IS 'Number of the process on its host.';
COMMENT ON COLUMN sexton.instances.version IS 'Of the program.';
COMMENT ON COLUMN sexton.instances.tz_version IS 'Release of the time zone data in the program; null: a worker.';
COMMENT ON COLUMN sexton.instances.pools IS 'The pools that a worker consumes from.';
COMMENT ON COLUMN sexton.instances.slots IS 'How many tasks a worker runs at once.';
COMMENT ON COLUMN sexton.instances.pool_slots IS 'Slots for each of pools, in the same order; null: a scheduler, or slots for all pools together.';
COMMENT ON COLUMN sexton.instances.db_connections IS 'Connections to PostgreSQL that the process may hold for its own work, DB_POOL_SIZE; null: not known.';
COMMENT ON COLUMN sexton.instances.instance_lock IS 'Identity of the lock file that the process holds: the next process that holds it knows that this one is dead. Null: none.';
COMMENT ON COLUMN sexton.instances.started_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.instances.heartbeat_at IS 'By the database''s clock; written every few seconds.';
COMMENT ON COLUMN sexton.instances.ready IS 'As its own /readyz said at the last heartbeat.';
COMMENT ON COLUMN sexton.instances.stopped_at IS 'When it stopped in order, or was found dead.';

CREATE TABLE sexton.offers (
    instance_id   uuid NOT NULL REFERENCES sexton.instances (id) ON DELETE CASCADE,
    task_type     text NOT NULL,
    params_schema jsonb,
    PRIMARY KEY (instance_id, task_type)
);
-- Which workers run a task type.
CREATE INDEX offers_of_type ON sexton.offers (task_type);

COMMENT ON TABLE sexton.offers IS 'Task types that workers run, as the catalogue of each said at its start; removed an hour after the worker stopped.';
COMMENT ON COLUMN sexton.offers.instance_id IS 'The worker process.';
COMMENT ON COLUMN sexton.offers.task_type IS 'A task type that it runs.';
COMMENT ON COLUMN sexton.offers.params_schema IS 'JSON Schema of the params, at most 64 KiB of JSON; null: the catalogue has none.';

-- Operators

CREATE TABLE sexton.operator_actions (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           timestamptz NOT NULL,
    actor        text NOT NULL,
    -- The session says both, so that no statement can leave them out, and a person with psql is recorded as well.
    from_where   text DEFAULT nullif(current_setting('sexton.from_where', true), ''),
    from_address inet DEFAULT inet_client_addr(),
    action       text NOT NULL,
    job_id       uuid,
    execution_id uuid,
    bulk_id      bigint,
    reason       text,
    before       jsonb,
    after        jsonb
);
CREATE INDEX operator_actions_execution ON sexton.operator_actions (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX operator_actions_job ON sexton.operator_actions (job_id) WHERE job_id IS NOT NULL;
-- Retention of the audit, and lists of a period.
CREATE INDEX operator_actions_at ON sexton.operator_actions (at);

COMMENT ON TABLE sexton.operator_actions IS 'The audit, append-only: who did what, when, why. Without foreign keys: it outlives the rows that it names. Only retention removes from it, by delete_old_operator_actions.';
COMMENT ON COLUMN sexton.operator_actions.id IS 'Serial.';
COMMENT ON COLUMN sexton.operator_actions.at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.operator_actions.actor IS 'The operator, or the program that acted for one.';
COMMENT ON COLUMN sexton.operator_actions.from_where IS 'Host, process and terminal, as the session said (sexton.from_where); null: it did not say.';
COMMENT ON COLUMN sexton.operator_actions.from_address IS 'The address from which the server saw the session come; null: a local socket.';
COMMENT ON COLUMN sexton.operator_actions.action IS 'A word: requeue, hand_requeue, discard, restore, cancel, pause, resume, trigger, apply …';
COMMENT ON COLUMN sexton.operator_actions.job_id IS 'The job that it was about; null: none.';
COMMENT ON COLUMN sexton.operator_actions.execution_id IS 'The execution that it was about; null: none.';
COMMENT ON COLUMN sexton.operator_actions.bulk_id IS 'The bulk that carried it out; null: none.';
COMMENT ON COLUMN sexton.operator_actions.reason IS 'As given.';
COMMENT ON COLUMN sexton.operator_actions.before IS 'What was before.';
COMMENT ON COLUMN sexton.operator_actions.after IS 'What is after.';

-- Nobody changes what was recorded, and nobody removes it but the function below while it runs. A role that lacks the
-- right to delete is refused before this trigger is asked.
CREATE FUNCTION sexton.operator_actions_are_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('sexton.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'operator_actions is append-only';
END $$;
CREATE TRIGGER operator_actions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON sexton.operator_actions
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.operator_actions_are_append_only();

-- Runs with the rights of its owner, so that the programs need none to delete. It removes nothing that is younger than
-- 30 days, whatever its caller says.
CREATE FUNCTION sexton.delete_old_operator_actions(
    older_than timestamptz, behind timestamptz, most integer,
    OUT removed bigint, OUT last_at timestamptz, OUT last_id bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Not by a SET of the function, for which the owner would need a right of its own.
    PERFORM set_config('sexton.audit_retention', 'on', true);
    WITH gone AS (
        DELETE FROM sexton.operator_actions WHERE id IN (
            SELECT o.id FROM sexton.operator_actions o
            WHERE o.at < least(older_than, clock_timestamp() - interval '30 days')
              AND o.at >= coalesce(behind, '-infinity')
            ORDER BY o.at LIMIT most)
        RETURNING id, at)
    SELECT count(*), max(gone.at), max(gone.id) INTO removed, last_at, last_id FROM gone;
    PERFORM set_config('sexton.audit_retention', 'off', true);
END $$;
REVOKE ALL ON FUNCTION sexton.delete_old_operator_actions(timestamptz, timestamptz, integer) FROM PUBLIC;
COMMENT ON FUNCTION sexton.delete_old_operator_actions(timestamptz, timestamptz, integer) IS 'Retention of the audit: removes at most "most" rows that are older than older_than and than 30 days, the oldest from behind on.';

-- Failures

-- Small and dense, apart from the millions of executions that succeeded, so that claims and renewals maintain no
-- further index.
CREATE TABLE sexton.failures (
    execution_id uuid PRIMARY KEY,
    discarded    boolean NOT NULL,
    job_id       uuid NOT NULL,
    task_type    text NOT NULL,
    pool         text NOT NULL,
    failed_at    timestamptz NOT NULL,
    error_class  text,
    fingerprint  text,
    worker       text,
    words        tsvector NOT NULL,
    params       jsonb NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- One index for each filter that can stand alone, in the order of the list. The first holds the fingerprint as well, so
-- that muted groups are passed over without reading their rows.
CREATE INDEX failures_by_time ON sexton.failures (discarded, failed_at, execution_id) INCLUDE (fingerprint);
CREATE INDEX failures_by_job ON sexton.failures (discarded, job_id, failed_at, execution_id);
CREATE INDEX failures_by_task_type ON sexton.failures (discarded, task_type, failed_at, execution_id);
CREATE INDEX failures_by_pool ON sexton.failures (discarded, pool, failed_at, execution_id);
CREATE INDEX failures_by_class ON sexton.failures (discarded, error_class, failed_at, execution_id);
CREATE INDEX failures_by_fingerprint ON sexton.failures (discarded, fingerprint, failed_at, execution_id);
CREATE INDEX failures_by_worker ON sexton.failures (discarded, worker, failed_at, execution_id);
-- Every search reads the pending list of these, so it is short.
CREATE INDEX failures_by_words ON sexton.failures USING gin (words) WITH (gin_pending_list_limit = 256);
CREATE INDEX failures_by_params ON sexton.failures USING gin (params jsonb_path_ops) WITH (gin_pending_list_limit = 256);
CREATE INDEX failures_without_fingerprint ON sexton.failures (execution_id) WHERE fingerprint IS NULL;

COMMENT ON TABLE sexton.failures IS 'The failure index: one row for each execution that is failed or discarded, for those who search. A trigger keeps it.';
COMMENT ON COLUMN sexton.failures.execution_id IS 'The execution. Without a foreign key: the trigger removes the row.';
COMMENT ON COLUMN sexton.failures.discarded IS 'Whether it was discarded; otherwise it is failed.';
COMMENT ON COLUMN sexton.failures.job_id IS 'executions.job_id.';
COMMENT ON COLUMN sexton.failures.task_type IS 'executions.task_type.';
COMMENT ON COLUMN sexton.failures.pool IS 'executions.pool.';
COMMENT ON COLUMN sexton.failures.failed_at IS 'executions.finished_at: when it failed, or was discarded or restored.';
COMMENT ON COLUMN sexton.failures.error_class IS 'executions.error_class, at most 200 characters.';
COMMENT ON COLUMN sexton.failures.fingerprint IS 'executions.fingerprint; null: not computed yet.';
COMMENT ON COLUMN sexton.failures.worker IS 'Name of the worker that ran the last attempt, or its process''s id; null: no attempt was opened.';
COMMENT ON COLUMN sexton.failures.words IS 'The words of executions.error_message.';
COMMENT ON COLUMN sexton.failures.params IS 'executions.params.';

-- A trigger keeps the index, rather than each statement that fails an execution, so that a change by hand keeps it too.
CREATE FUNCTION sexton.index_failure() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' OR NEW.state NOT IN ('failed', 'discarded') THEN
        DELETE FROM sexton.failures WHERE execution_id = OLD.id;
        RETURN NULL;
    END IF;
    -- A row that is there is of the same failure, since the end of a failure removes it; so it keeps the worker's name
    -- also when the worker's own row is gone.
    INSERT INTO sexton.failures (execution_id, discarded, job_id, task_type, pool, failed_at, error_class,
                                 fingerprint, worker, words, params)
    VALUES (NEW.id, NEW.state = 'discarded', NEW.job_id, left(NEW.task_type, 200), left(NEW.pool, 200),
            NEW.finished_at, left(NEW.error_class, 200), left(NEW.fingerprint, 16),
            (SELECT left(coalesce(i.name, a.worker_id::text), 200)
             FROM sexton.attempts a LEFT JOIN sexton.instances i ON i.id = a.worker_id
             WHERE a.execution_id = NEW.id ORDER BY a.number DESC LIMIT 1),
            -- Everything but letters and digits separates words among ASCII, as in shared/model/src/failures/text.rs,
            -- whatever the database's locale is.
            to_tsvector('simple', regexp_replace(left(coalesce(NEW.error_message, ''), 4000),
                                                 '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g')),
            NEW.params)
    ON CONFLICT (execution_id) DO UPDATE SET
        discarded = EXCLUDED.discarded, job_id = EXCLUDED.job_id, task_type = EXCLUDED.task_type,
        pool = EXCLUDED.pool, failed_at = EXCLUDED.failed_at, error_class = EXCLUDED.error_class,
        fingerprint = EXCLUDED.fingerprint, worker = coalesce(failures.worker, EXCLUDED.worker),
        words = EXCLUDED.words, params = EXCLUDED.params;
    RETURN NULL;
END $$;
CREATE TRIGGER index_new_failure AFTER INSERT ON sexton.executions
    FOR EACH ROW WHEN (NEW.state IN ('failed', 'discarded')) EXECUTE FUNCTION sexton.index_failure();
CREATE TRIGGER index_changed_failure AFTER UPDATE OF state, fingerprint, pool, params ON sexton.executions
    FOR EACH ROW WHEN (OLD.state IN ('failed', 'discarded') OR NEW.state IN ('failed', 'discarded'))
    EXECUTE FUNCTION sexton.index_failure();
CREATE TRIGGER index_removed_failure AFTER DELETE ON sexton.executions
    FOR EACH ROW WHEN (OLD.state IN ('failed', 'discarded')) EXECUTE FUNCTION sexton.index_failure();

-- The next failure of the execution is another one, with a fingerprint of its own.
CREATE FUNCTION sexton.clear_fingerprint() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.fingerprint := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER clear_fingerprint BEFORE UPDATE OF state ON sexton.executions
    FOR EACH ROW WHEN (OLD.state IN ('failed', 'discarded') AND NEW.state NOT IN ('failed', 'discarded'))
    EXECUTE FUNCTION sexton.clear_fingerprint();

CREATE TABLE sexton.failures_fill (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    filled_to uuid,
    done_at   timestamptz
);
INSERT INTO sexton.failures_fill (done_at) VALUES (now());

COMMENT ON TABLE sexton.failures_fill IS 'One row: how far a rebuild of the failure index has read the executions.';
COMMENT ON COLUMN sexton.failures_fill.one IS 'Always true: there is one row.';
COMMENT ON COLUMN sexton.failures_fill.filled_to IS 'executions.id up to which it has; null: none yet.';
COMMENT ON COLUMN sexton.failures_fill.done_at IS 'When it read the last of them; null: some are still missing.';

CREATE TABLE sexton.failure_groups (
    fingerprint text PRIMARY KEY,
    error_class text,
    pattern     text,
    example     uuid,
    state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'muted', 'resolved')),
    note        text,
    decided_by  text,
    decided_at  timestamptz,
    first_seen  timestamptz,
    last_seen   timestamptz
) WITH (fillfactor = 70);

COMMENT ON TABLE sexton.failure_groups IS 'Failures with one fingerprint, and what operators decided about them.';
COMMENT ON COLUMN sexton.failure_groups.fingerprint IS 'executions.fingerprint.';
COMMENT ON COLUMN sexton.failure_groups.error_class IS 'The error class of all of them; null: not read yet.';
COMMENT ON COLUMN sexton.failure_groups.pattern IS 'Their message with placeholders for the parts that differ; null: not read yet.';
COMMENT ON COLUMN sexton.failure_groups.example IS 'The execution of one of them, which may be removed.';
COMMENT ON COLUMN sexton.failure_groups.state IS 'open, muted (left out of lists) or resolved; reopened if last_seen is after decided_at.';
COMMENT ON COLUMN sexton.failure_groups.note IS 'The operators'' note, at most 2,000 characters.';
COMMENT ON COLUMN sexton.failure_groups.decided_by IS 'Who set the state last; null: nobody.';
COMMENT ON COLUMN sexton.failure_groups.decided_at IS 'When the state was set; null: never.';
COMMENT ON COLUMN sexton.failure_groups.first_seen IS 'When the first of them failed.';
COMMENT ON COLUMN sexton.failure_groups.last_seen IS 'When the last of them failed.';

-- Each failure and each end of one appends a row, so no transaction waits for another. Schedulers fold the rows into
-- failure_counts.
CREATE TABLE sexton.failure_changes (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint  text NOT NULL,
    job_id       uuid NOT NULL,
    execution_id uuid NOT NULL,
    change       smallint NOT NULL CHECK (change IN (-1, 1)),
    failed_at    timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

COMMENT ON TABLE sexton.failure_changes IS 'Executions that failed or are failed no more, and are not folded into failure_counts yet.';
COMMENT ON COLUMN sexton.failure_changes.id IS 'Serial.';
COMMENT ON COLUMN sexton.failure_changes.fingerprint IS 'The group.';
COMMENT ON COLUMN sexton.failure_changes.job_id IS 'The job.';
COMMENT ON COLUMN sexton.failure_changes.execution_id IS 'The execution.';
COMMENT ON COLUMN sexton.failure_changes.change IS '1: one more is failed; -1: one less.';
COMMENT ON COLUMN sexton.failure_changes.failed_at IS 'When it failed; null: it did not fail now (it was restored, or ended).';

CREATE TABLE sexton.failure_counts (
    fingerprint text NOT NULL,
    job_id      uuid NOT NULL,
    standing    bigint NOT NULL,
    PRIMARY KEY (fingerprint, job_id)
) WITH (fillfactor = 70);

COMMENT ON TABLE sexton.failure_counts IS 'How many executions are failed, by group and job, as far as failure_changes are folded.';
COMMENT ON COLUMN sexton.failure_counts.fingerprint IS 'The group.';
COMMENT ON COLUMN sexton.failure_counts.job_id IS 'The job.';
COMMENT ON COLUMN sexton.failure_counts.standing IS 'How many. Below zero while a change that made one more is not folded yet.';

CREATE TABLE sexton.failure_hours (
    fingerprint text NOT NULL,
    hour        timestamptz NOT NULL,
    failed      bigint NOT NULL,
    PRIMARY KEY (fingerprint, hour)
) WITH (fillfactor = 70);

COMMENT ON TABLE sexton.failure_hours IS 'How many executions failed in each hour, whatever became of them since; kept for eight days.';
COMMENT ON COLUMN sexton.failure_hours.fingerprint IS 'The group.';
COMMENT ON COLUMN sexton.failure_hours.hour IS 'The hour''s beginning, in UTC.';
COMMENT ON COLUMN sexton.failure_hours.failed IS 'How many.';

CREATE FUNCTION sexton.record_failure_change() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND NOT OLD.discarded AND OLD.fingerprint IS NOT NULL THEN
        INSERT INTO sexton.failure_changes (fingerprint, job_id, change, execution_id)
        VALUES (OLD.fingerprint, OLD.job_id, -1, OLD.execution_id);
    END IF;
    IF TG_OP <> 'DELETE' AND NOT NEW.discarded AND NEW.fingerprint IS NOT NULL THEN
        INSERT INTO sexton.failure_changes (fingerprint, job_id, change, failed_at, execution_id)
        VALUES (NEW.fingerprint, NEW.job_id, 1,
                -- A restored execution has not failed again.
                CASE WHEN TG_OP = 'INSERT' OR OLD.fingerprint IS DISTINCT FROM NEW.fingerprint
                     THEN NEW.failed_at END, NEW.execution_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER record_failure AFTER INSERT OR DELETE ON sexton.failures
    FOR EACH ROW EXECUTE FUNCTION sexton.record_failure_change();
CREATE TRIGGER record_changed_failure AFTER UPDATE ON sexton.failures
    FOR EACH ROW WHEN (OLD.discarded IS DISTINCT FROM NEW.discarded
        OR OLD.fingerprint IS DISTINCT FROM NEW.fingerprint OR OLD.job_id IS DISTINCT FROM NEW.job_id)
    EXECUTE FUNCTION sexton.record_failure_change();

-- Bulks

CREATE TABLE sexton.bulks (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text NOT NULL CHECK (kind IN ('requeue', 'discard', 'restore')),
    selector      jsonb NOT NULL,
    previewed_at  timestamptz NOT NULL,
    actor         text NOT NULL,
    from_where    text DEFAULT nullif(current_setting('sexton.from_where', true), ''),
    reason        text,
    rate          text CHECK (rate ~ '^[1-9][0-9]{0,5}/[smhd]$'),
    canary        integer CHECK (canary BETWEEN 1 AND 1000),
    pool          text,
    verify        text CHECK (verify IN ('task', 'command')),
    state         text NOT NULL CHECK (state IN ('preparing', 'running', 'paused', 'stopped', 'done')),
    why           text,
    stopped_by    text,
    -- How far its items are written.
    cursor_at     timestamptz,
    cursor_id     uuid,
    cursor_item   bigint,
    prepared_at   timestamptz,
    canary_passed boolean NOT NULL DEFAULT false,
    paced_since   timestamptz,
    paced         bigint NOT NULL DEFAULT 0,
    -- How many items came to which end.
    selected      bigint NOT NULL DEFAULT 0,
    done          bigint NOT NULL DEFAULT 0,
    refused       bigint NOT NULL DEFAULT 0,
    resolved      bigint NOT NULL DEFAULT 0,
    left_alone    bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    CHECK (state <> 'done' OR ended_at IS NOT NULL)
);
-- The bulks that a scheduler has to work on, among those of all times.
CREATE INDEX bulks_active ON sexton.bulks (id) WHERE state IN ('preparing', 'running');

COMMENT ON TABLE sexton.bulks IS 'Operators'' actions on many failed executions at once. Schedulers carry them out.';
COMMENT ON COLUMN sexton.bulks.id IS 'Serial.';
COMMENT ON COLUMN sexton.bulks.kind IS 'requeue, discard or restore.';
COMMENT ON COLUMN sexton.bulks.selector IS 'Which executions the operator selected: a filter, how many ids, or the bulk that is taken back.';
COMMENT ON COLUMN sexton.bulks.previewed_at IS 'When the preview was made: only executions that had failed by then are selected.';
COMMENT ON COLUMN sexton.bulks.actor IS 'The operator.';
COMMENT ON COLUMN sexton.bulks.from_where IS 'Host, process and terminal, as the session said.';
COMMENT ON COLUMN sexton.bulks.reason IS 'As given.';
COMMENT ON COLUMN sexton.bulks.rate IS 'How fast, such as 50/s; null: as fast as tickets are published.';
COMMENT ON COLUMN sexton.bulks.canary IS 'How many go first; the rest follows when all of them have ended well. Null: no canary.';
COMMENT ON COLUMN sexton.bulks.pool IS 'The pool that they are sent to; null: each to its own.';
COMMENT ON COLUMN sexton.bulks.verify IS 'What says first whether the effect has happened: the job''s verify task, or the operator''s command; null: nothing.';
COMMENT ON COLUMN sexton.bulks.state IS 'See the transition table in shared/model/src/bulk.rs.';
COMMENT ON COLUMN sexton.bulks.why IS 'Why it is paused or stopped.';
COMMENT ON COLUMN sexton.bulks.stopped_by IS 'Who stopped it; null: nobody.';
COMMENT ON COLUMN sexton.bulks.cursor_at IS 'executions.finished_at of the last item that is written.';
COMMENT ON COLUMN sexton.bulks.cursor_id IS 'The execution''s id of that item.';
COMMENT ON COLUMN sexton.bulks.cursor_item IS 'Where another bulk is taken back: the ordinal of the last of its items that was read.';
COMMENT ON COLUMN sexton.bulks.prepared_at IS 'When its last item was written; null: not yet.';
COMMENT ON COLUMN sexton.bulks.canary_passed IS 'Whether the canary has ended well, or an operator resumed the bulk.';
COMMENT ON COLUMN sexton.bulks.paced_since IS 'When its pace began: at the first item, or the last resume.';
COMMENT ON COLUMN sexton.bulks.paced IS 'How many items have begun since then.';
COMMENT ON COLUMN sexton.bulks.selected IS 'How many items it has.';
COMMENT ON COLUMN sexton.bulks.done IS 'How many of them were done.';
COMMENT ON COLUMN sexton.bulks.refused IS 'How many were not failed any more when their turn came.';
COMMENT ON COLUMN sexton.bulks.resolved IS 'How many had had their effect, and were resolved without another attempt.';
COMMENT ON COLUMN sexton.bulks.left_alone IS 'How many stay failed, since it could not be said whether their effect has happened.';
COMMENT ON COLUMN sexton.bulks.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.bulks.ended_at IS 'When nothing was left to do, or it was stopped.';

CREATE TABLE sexton.bulk_items (
    bulk_id      bigint NOT NULL REFERENCES sexton.bulks (id),
    ordinal      bigint NOT NULL,
    execution_id uuid NOT NULL,
    seen         integer NOT NULL,
    state        text NOT NULL CHECK (state IN ('unasked', 'waiting', 'done', 'refused', 'resolved', 'left')),
    note         text,
    PRIMARY KEY (bulk_id, ordinal)
) WITH (fillfactor = 80);
-- Items that are still to do, among many that are done.
CREATE INDEX bulk_items_open ON sexton.bulk_items (bulk_id, state, ordinal) WHERE state IN ('unasked', 'waiting');

COMMENT ON TABLE sexton.bulk_items IS 'The executions that a bulk selected. Without a foreign key to them: it says what was selected, whatever became of it.';
COMMENT ON COLUMN sexton.bulk_items.bulk_id IS 'The bulk.';
COMMENT ON COLUMN sexton.bulk_items.ordinal IS '1, 2, 3 …, the longest failed first.';
COMMENT ON COLUMN sexton.bulk_items.execution_id IS 'The execution.';
COMMENT ON COLUMN sexton.bulk_items.seen IS 'Its attempt number when it was selected: a later failure of it is refused.';
COMMENT ON COLUMN sexton.bulk_items.state IS 'unasked: a verify task or command has yet to say whether its effect has happened; waiting: to be done; done; refused: it was not failed any more; resolved: its effect had happened; left: there was no answer.';
COMMENT ON COLUMN sexton.bulk_items.note IS 'Why it was refused or left, or what the command wrote.';

CREATE TABLE sexton.bulk_questions (
    bulk_id  bigint NOT NULL REFERENCES sexton.bulks (id) ON DELETE CASCADE,
    ordinal  bigint NOT NULL,
    question uuid NOT NULL,
    answer   text CHECK (answer IN ('happened', 'not_yet', 'none')),
    PRIMARY KEY (bulk_id, ordinal)
) WITH (fillfactor = 80);
-- Questions without an answer yet, among many that have one.
CREATE INDEX bulk_questions_open ON sexton.bulk_questions (bulk_id, ordinal) WHERE answer IS NULL;

COMMENT ON TABLE sexton.bulk_questions IS 'Executions of verify tasks that say for a bulk whether the effect of its items has happened.';
COMMENT ON COLUMN sexton.bulk_questions.bulk_id IS 'The bulk.';
COMMENT ON COLUMN sexton.bulk_questions.ordinal IS 'Its item.';
COMMENT ON COLUMN sexton.bulk_questions.question IS 'The verify task''s execution. Without a foreign key: retention removes it when it has long ended.';
COMMENT ON COLUMN sexton.bulk_questions.answer IS 'happened; not_yet; none: the verify task could not run, or said neither. Null: no answer yet.';

-- The failed queue and the broker

CREATE TABLE sexton.unknown_messages (
    digest         bytea PRIMARY KEY CHECK (length(digest) = 32),
    kind           text NOT NULL CHECK (kind IN ('unreadable', 'foreign', 'ticket')),
    reason         text NOT NULL,
    body           bytea NOT NULL,
    body_bytes     bigint NOT NULL,
    properties     text NOT NULL,
    copies         integer NOT NULL CHECK (copies >= 1),
    first_seen     timestamptz NOT NULL,
    last_seen      timestamptz NOT NULL,
    gone_at        timestamptz,
    discard_at     timestamptz,
    discard_by     text,
    discard_reason text,
    discard_pass   timestamptz,
    restore_at     timestamptz,
    CHECK (body_bytes >= length(body)),
    CHECK ((discard_at IS NULL) = (discard_by IS NULL) AND (discard_at IS NULL) = (discard_reason IS NULL)),
    CHECK (discard_at IS NOT NULL OR discard_pass IS NULL),
    CHECK (restore_at IS NULL OR gone_at IS NOT NULL)
);
-- What the next sweep has to do: messages to remove, messages to publish again.
CREATE INDEX unknown_messages_work ON sexton.unknown_messages (digest)
    WHERE restore_at IS NOT NULL OR (discard_at IS NOT NULL AND gone_at IS NULL);
-- Messages that a complete sweep did not meet, and lists.
CREATE INDEX unknown_messages_there ON sexton.unknown_messages (first_seen, digest) WHERE gone_at IS NULL;
-- Retention.
CREATE INDEX unknown_messages_gone ON sexton.unknown_messages (gone_at) WHERE gone_at IS NOT NULL;

COMMENT ON TABLE sexton.unknown_messages IS 'Messages in the failed queue that no row knows, as the sweep saw them.';
COMMENT ON COLUMN sexton.unknown_messages.digest IS 'SHA-256 of body and properties: equal messages share a row.';
COMMENT ON COLUMN sexton.unknown_messages.kind IS 'unreadable, foreign (a task of another program), or ticket (of an execution that has no row).';
COMMENT ON COLUMN sexton.unknown_messages.reason IS 'Why no row knows it; at most 2,000 bytes.';
COMMENT ON COLUMN sexton.unknown_messages.body IS 'Byte for byte; the first 1 MiB.';
COMMENT ON COLUMN sexton.unknown_messages.body_bytes IS 'Bytes of the whole body; more than body has if that was cut.';
COMMENT ON COLUMN sexton.unknown_messages.properties IS 'JSON object: the properties and headers that Sexton keeps. Text, since jsonb has no \u0000.';
COMMENT ON COLUMN sexton.unknown_messages.copies IS 'How many equal messages the pass of last_seen met; while it is being discarded, plus those that interrupted passes met before.';
COMMENT ON COLUMN sexton.unknown_messages.first_seen IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.unknown_messages.last_seen IS 'When the last pass that met it began.';
COMMENT ON COLUMN sexton.unknown_messages.gone_at IS 'When a pass through the whole queue had removed it, or did not meet it any more; null: it is in the queue.';
COMMENT ON COLUMN sexton.unknown_messages.discard_at IS 'When an operator discarded it; the next pass removes it.';
COMMENT ON COLUMN sexton.unknown_messages.discard_by IS 'That operator.';
COMMENT ON COLUMN sexton.unknown_messages.discard_reason IS 'The operator''s reason.';
COMMENT ON COLUMN sexton.unknown_messages.discard_pass IS 'The pass that removed it, by when it began.';
COMMENT ON COLUMN sexton.unknown_messages.restore_at IS 'When an operator took the discard back; the next pass publishes it again.';

CREATE TABLE sexton.unknown_overflow (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    messages bigint NOT NULL CHECK (messages >= 0),
    bytes    bigint NOT NULL CHECK (bytes >= 0),
    at_least boolean NOT NULL,
    pass     timestamptz NOT NULL
);

COMMENT ON TABLE sexton.unknown_overflow IS 'One row: messages that the last sweep left in the failed queue without a row in unknown_messages, since that was full. No row: it never was.';
COMMENT ON COLUMN sexton.unknown_overflow.one IS 'Always true: there is one row.';
COMMENT ON COLUMN sexton.unknown_overflow.messages IS 'How many messages.';
COMMENT ON COLUMN sexton.unknown_overflow.bytes IS 'Bytes of their bodies.';
COMMENT ON COLUMN sexton.unknown_overflow.at_least IS 'Whether the pass ended before it had seen the whole queue, so that there may be more.';
COMMENT ON COLUMN sexton.unknown_overflow.pass IS 'When that pass began.';

-- Here rather than in the scheduler's memory, however long the queue is. Unlogged: it belongs to one pass, and a pass
-- does not outlive the server. After a crash the table is empty, and so has the row of no pass.
CREATE UNLOGGED TABLE sexton.sweep_kept (
    pass         timestamptz NOT NULL,
    execution_id uuid NOT NULL,
    PRIMARY KEY (pass, execution_id)
);

COMMENT ON TABLE sexton.sweep_kept IS 'Executions whose message the sweep under way has met in the failed queue and kept there; empty between passes. Each pass has a row of its own with the nil UUID: without that row, what the pass has kept is not known.';
COMMENT ON COLUMN sexton.sweep_kept.pass IS 'When the pass began.';
COMMENT ON COLUMN sexton.sweep_kept.execution_id IS 'The execution; the nil UUID for the pass itself.';

CREATE TABLE sexton.queue_incidents (
    queue    text NOT NULL,
    kind     text NOT NULL CHECK (kind IN ('expired', 'overflowed', 'refused', 'vanished', 'missing')),
    messages bigint NOT NULL CHECK (messages >= 0),
    times    bigint NOT NULL CHECK (times >= 1),
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    PRIMARY KEY (queue, kind)
) WITH (fillfactor = 50); -- Few rows, each rewritten again and again.

COMMENT ON TABLE sexton.queue_incidents IS 'What RabbitMQ did to queues of its own accord, mostly by a policy; at most 1,000 rows, each removed a month after it was last written. For `sexton doctor`.';
COMMENT ON COLUMN sexton.queue_incidents.queue IS 'The queue''s name.';
COMMENT ON COLUMN sexton.queue_incidents.kind IS 'expired: messages expired in a main queue; overflowed: its oldest were dropped; refused: it took no more; vanished: it did not exist any more; missing: parked messages were not in the failed queue any more.';
COMMENT ON COLUMN sexton.queue_incidents.messages IS 'How many messages it concerned, over the week before last_at.';
COMMENT ON COLUMN sexton.queue_incidents.times IS 'How often a process recorded it; each process does at most once a second.';
COMMENT ON COLUMN sexton.queue_incidents.first_at IS 'When it was first recorded, by the database''s clock.';
COMMENT ON COLUMN sexton.queue_incidents.last_at IS 'When it was last recorded.';

-- Retention

CREATE TABLE sexton.retention (
    one               boolean PRIMARY KEY DEFAULT true CHECK (one),
    pruned_before     timestamptz,
    stripped_at       timestamptz,
    stripped_id       uuid,
    audit_removed_to  bigint NOT NULL DEFAULT 0,
    passed_at         timestamptz,
    passed_days       integer,
    passed_audit_days integer
);
INSERT INTO sexton.retention DEFAULT VALUES;

COMMENT ON TABLE sexton.retention IS 'One row: what retention has removed. A process that removes executions locks it first, a backfill shares it.';
COMMENT ON COLUMN sexton.retention.one IS 'Always true: there is one row.';
COMMENT ON COLUMN sexton.retention.pruned_before IS 'Executions that finished before this instant may have been removed, with their keys; null: none ever.';
COMMENT ON COLUMN sexton.retention.stripped_at IS 'Executions with a caller''s own key that finished before this instant are stripped; null: none.';
COMMENT ON COLUMN sexton.retention.stripped_id IS 'Of those that finished at stripped_at, the ones up to this id are stripped.';
COMMENT ON COLUMN sexton.retention.audit_removed_to IS 'The largest operator_actions.id that was removed; 0: none ever.';
COMMENT ON COLUMN sexton.retention.passed_at IS 'The 3:00 UTC of the last pass that came to its end; null: none yet.';
COMMENT ON COLUMN sexton.retention.passed_days IS 'RETENTION_DAYS of that pass.';
COMMENT ON COLUMN sexton.retention.passed_audit_days IS 'AUDIT_DAYS of that pass; 2147483647: for ever.';
