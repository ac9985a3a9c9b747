-- The tables of Sexton. PostgreSQL 13 or later.
--
-- What each transition may do is decided by one table in `shared/model/src/state.rs`; the CHECKs
-- here repeat which states there are and what a row in each of them must hold.

CREATE TABLE jobs (
    id                   uuid PRIMARY KEY,
    name                 text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    description          text NOT NULL DEFAULT '',
    target               text,
    schedule_kind        text NOT NULL CHECK (schedule_kind IN ('cron', 'every', 'once', 'none')),
    schedule_expression  text,
    task_type            text NOT NULL,
    params               jsonb NOT NULL CHECK (jsonb_typeof(params) = 'object'),
    pool                 text NOT NULL,
    overlap              text NOT NULL CHECK (overlap IN ('allow', 'skip')),
    misfire_policy       text NOT NULL CHECK (misfire_policy IN ('skip', 'fire_once', 'fire_all')),
    misfire_window_ms    bigint NOT NULL CHECK (misfire_window_ms >= 0),
    misfire_limit        integer NOT NULL CHECK (misfire_limit >= 1),
    max_retries          integer CHECK (max_retries >= 0),
    retry_delay_ms       bigint CHECK (retry_delay_ms >= 0),
    retry_multiplier     double precision CHECK (retry_multiplier >= 1),
    retry_max_delay_ms   bigint CHECK (retry_max_delay_ms >= 0),
    retry_jitter         double precision CHECK (retry_jitter BETWEEN 0 AND 1),
    timeout_ms           bigint NOT NULL CHECK (timeout_ms > 0),
    lease_ms             bigint CHECK (lease_ms > 0),
    lock_key             bigint,
    idempotency_template text,
    expect_within_ms     bigint CHECK (expect_within_ms > 0),
    labels               jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
    status               text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused')),
    paused_by            text,
    paused_why           text,
    paused_at            timestamptz,
    next_fire_at         timestamptz,
    revision             integer NOT NULL DEFAULT 1,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    CHECK ((schedule_kind = 'none') = (schedule_expression IS NULL)),
    CHECK ((status = 'paused') = (paused_at IS NOT NULL))
);
-- The planner's question, and nobody else's.
CREATE INDEX jobs_due ON jobs (next_fire_at) WHERE status = 'active' AND next_fire_at IS NOT NULL;

COMMENT ON TABLE jobs IS 'Definitions: what runs, when, and by which policies.';
COMMENT ON COLUMN jobs.id IS 'UUID version 7, drawn when the job is first applied; kept over changes.';
COMMENT ON COLUMN jobs.name IS 'Unique; <service>.<jobName> by convention; foreign.<type> for tasks published by others.';
COMMENT ON COLUMN jobs.description IS 'For people.';
COMMENT ON COLUMN jobs.target IS 'The id of the report, worker or reminder that is meant; handed on.';
COMMENT ON COLUMN jobs.schedule_kind IS 'cron, every, once or none.';
COMMENT ON COLUMN jobs.schedule_expression IS 'The cron text, the period as a duration, or the instant in RFC 3339; null for none.';
COMMENT ON COLUMN jobs.task_type IS 'What a worker''s catalogue is asked for.';
COMMENT ON COLUMN jobs.params IS 'Object handed to each attempt; at most 256 KiB of JSON.';
COMMENT ON COLUMN jobs.pool IS 'The worker pool that runs it.';
COMMENT ON COLUMN jobs.overlap IS 'What a firing does while an earlier execution is under way.';
COMMENT ON COLUMN jobs.misfire_policy IS 'Which of the firings that were noticed late run.';
COMMENT ON COLUMN jobs.misfire_window_ms IS 'Milliseconds; an older firing never runs.';
COMMENT ON COLUMN jobs.misfire_limit IS 'The most late firings that fire_all claims for one absence.';
COMMENT ON COLUMN jobs.max_retries IS 'Retries after the first attempt; null: the settling process''s default.';
COMMENT ON COLUMN jobs.retry_delay_ms IS 'Milliseconds before the first retry; null: default.';
COMMENT ON COLUMN jobs.retry_multiplier IS 'Factor from one delay to the next; null: default.';
COMMENT ON COLUMN jobs.retry_max_delay_ms IS 'Milliseconds; the longest delay; null: default.';
COMMENT ON COLUMN jobs.retry_jitter IS 'Fraction by which a delay varies; null: default.';
COMMENT ON COLUMN jobs.timeout_ms IS 'Milliseconds; the longest run of one attempt.';
COMMENT ON COLUMN jobs.lease_ms IS 'Milliseconds without a renewal until an attempt counts as lost; null: the worker''s LEASE_MS.';
COMMENT ON COLUMN jobs.lock_key IS 'A number that other systems know the job by.';
COMMENT ON COLUMN jobs.idempotency_template IS 'With {job} and {execution_key}; null: <job>:<execution_key>.';
COMMENT ON COLUMN jobs.expect_within_ms IS 'Milliseconds after the nominal time by which success is expected.';
COMMENT ON COLUMN jobs.labels IS 'The owner''s own words, text to text.';
COMMENT ON COLUMN jobs.status IS 'active or paused.';
COMMENT ON COLUMN jobs.paused_by IS 'Who paused it.';
COMMENT ON COLUMN jobs.paused_why IS 'The reason given.';
COMMENT ON COLUMN jobs.paused_at IS 'When; null while active.';
COMMENT ON COLUMN jobs.next_fire_at IS 'The next nominal firing that is not claimed yet; null: never again by itself.';
COMMENT ON COLUMN jobs.revision IS 'Plus one at each change of the definition.';
COMMENT ON COLUMN jobs.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN jobs.updated_at IS 'By the database''s clock.';

CREATE TABLE executions (
    id                  uuid PRIMARY KEY,
    job_id              uuid NOT NULL REFERENCES jobs (id),
    execution_key       text NOT NULL CHECK (length(execution_key) BETWEEN 1 AND 256),
    own_key             boolean NOT NULL DEFAULT false,
    scheduled_for       timestamptz NOT NULL,
    state               text NOT NULL,
    attempt             integer NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    rev                 integer NOT NULL DEFAULT 1,
    task_type           text NOT NULL,
    pool                text NOT NULL,
    target              text,
    params              jsonb NOT NULL,
    idempotency_key     text NOT NULL,
    claimed_by          text NOT NULL,
    claimed_at          timestamptz NOT NULL,
    ticket_published_at timestamptz,
    relay_after         timestamptz NOT NULL,
    next_attempt_at     timestamptz,
    reconcile_count     smallint NOT NULL DEFAULT 0,
    retries_used        integer NOT NULL DEFAULT 0,
    crashes_used        integer NOT NULL DEFAULT 0,
    started_at          timestamptz,
    finished_at         timestamptz,
    worker_id           uuid,
    open_token          uuid,
    lease_until         timestamptz,
    cancel_requested    boolean NOT NULL DEFAULT false,
    outcome             text,
    error_class         text,
    error_message       text,
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
    CONSTRAINT executions_skipped CHECK ((state = 'skipped') = (skip_reason IS NOT NULL))
) WITH (
    -- A row is rewritten about five times in its first minutes, and a running one every few seconds;
    -- room on its page keeps the renewals HOT. Vacuum follows the hot rows, not the millions that rest.
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);
-- Tickets that still have to be published, in nominal order: the relay.
CREATE INDEX executions_owed ON executions (scheduled_for, id)
    WHERE ticket_published_at IS NULL AND state IN ('pending', 'retrying', 'failed');
-- The rescuer. On the id, not on lease_until: an index on what a renewal writes makes it not HOT.
CREATE INDEX executions_running ON executions (id) WHERE state = 'running';
-- What waits, oldest due first: reconcile, status.
CREATE INDEX executions_waiting ON executions (next_attempt_at) WHERE state IN ('pending', 'retrying');
-- Overlap: is an earlier execution of the job under way?
CREATE INDEX executions_under_way ON executions (job_id) WHERE state IN ('pending', 'running', 'retrying');
-- What a job ran, newest first, for people. Without it, a job that never ran is looked for in the whole
-- table, by its key or backwards. `claimed_at` never changes, so the index is written once per row and
-- renewals stay HOT.
CREATE INDEX executions_of_job ON executions (job_id, claimed_at);
-- The graveyard.
CREATE INDEX executions_failed ON executions (finished_at, id) WHERE state = 'failed';

COMMENT ON TABLE executions IS 'The durable unit of work, from claim to a final state. The record; the broker only delivers.';
COMMENT ON COLUMN executions.id IS 'UUID version 7; the message id of its tickets.';
COMMENT ON COLUMN executions.job_id IS 'The job it is a firing of.';
COMMENT ON COLUMN executions.execution_key IS 'Unique for the job: cron-…, every-…, once-…, or the caller''s own.';
COMMENT ON COLUMN executions.own_key IS 'The key is a caller''s own: kept for deduplication when retention strips the row.';
COMMENT ON COLUMN executions.scheduled_for IS 'The nominal time; for a trigger, when it was triggered.';
COMMENT ON COLUMN executions.state IS 'See the transition table in shared/model/src/state.rs.';
COMMENT ON COLUMN executions.attempt IS 'Number of the one ticket that may be opened next or is open now: the fence.';
COMMENT ON COLUMN executions.rev IS 'Plus one at each transition and each new debt; guards the mark of a publish.';
COMMENT ON COLUMN executions.task_type IS 'As claimed.';
COMMENT ON COLUMN executions.pool IS 'As claimed.';
COMMENT ON COLUMN executions.target IS 'As claimed.';
COMMENT ON COLUMN executions.params IS 'As claimed.';
COMMENT ON COLUMN executions.idempotency_key IS 'The same over retries and requeues.';
COMMENT ON COLUMN executions.claimed_by IS '<instance>:<pid> of the process that inserted the row.';
COMMENT ON COLUMN executions.claimed_at IS 'By the database''s clock.';
COMMENT ON COLUMN executions.ticket_published_at IS 'When the broker confirmed the row''s current ticket; null: owed.';
COMMENT ON COLUMN executions.relay_after IS 'Not before this does the relay publish an owed ticket.';
COMMENT ON COLUMN executions.next_attempt_at IS 'Not before this may the ticket be opened; null unless pending or retrying.';
COMMENT ON COLUMN executions.reconcile_count IS 'How often the ticket was owed again because it was missed; doubles the patience.';
COMMENT ON COLUMN executions.retries_used IS 'Since the claim or the last requeue.';
COMMENT ON COLUMN executions.crashes_used IS 'Since the claim or the last requeue.';
COMMENT ON COLUMN executions.started_at IS 'When the last attempt was opened.';
COMMENT ON COLUMN executions.finished_at IS 'When it ended, was parked or was discarded; null while under way.';
COMMENT ON COLUMN executions.worker_id IS 'The worker process that holds the open attempt; null unless running.';
COMMENT ON COLUMN executions.open_token IS 'That worker''s mark on the open attempt; null unless running.';
COMMENT ON COLUMN executions.lease_until IS 'Until then the open attempt is its worker''s alone; null unless running.';
COMMENT ON COLUMN executions.cancel_requested IS 'An operator wants the open attempt to end.';
COMMENT ON COLUMN executions.outcome IS 'How the last attempt ended.';
COMMENT ON COLUMN executions.error_class IS 'Of the last attempt that failed; a word.';
COMMENT ON COLUMN executions.error_message IS 'Of the last attempt that failed; at most 2,000 bytes.';
COMMENT ON COLUMN executions.skip_reason IS 'Why it was never to run; null unless skipped.';

CREATE TABLE attempts (
    execution_id  uuid NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    number        integer NOT NULL CHECK (number >= 1),
    worker_id     uuid NOT NULL,
    opened_at     timestamptz NOT NULL,
    finished_at   timestamptz,
    outcome       text,
    error_class   text,
    error_message text,
    exit_code     integer,
    signal        integer,
    output        jsonb,
    late_outcome  text,
    late_at       timestamptz,
    PRIMARY KEY (execution_id, number),
    CHECK ((finished_at IS NULL) = (outcome IS NULL)),
    CHECK ((late_at IS NULL) = (late_outcome IS NULL))
) WITH (fillfactor = 80);

COMMENT ON TABLE attempts IS 'One row a try; the primary key is why an attempt is opened at most once.';
COMMENT ON COLUMN attempts.execution_id IS 'The execution.';
COMMENT ON COLUMN attempts.number IS '1, 2, 3 … over the execution''s whole life.';
COMMENT ON COLUMN attempts.worker_id IS 'The worker process that opened it.';
COMMENT ON COLUMN attempts.opened_at IS 'By the database''s clock.';
COMMENT ON COLUMN attempts.finished_at IS 'When its outcome was recorded.';
COMMENT ON COLUMN attempts.outcome IS 'succeeded, error, permanent, timeout, signal, lost, cancelled or interrupted.';
COMMENT ON COLUMN attempts.error_class IS 'A word.';
COMMENT ON COLUMN attempts.error_message IS 'At most 2,000 bytes.';
COMMENT ON COLUMN attempts.exit_code IS 'Of the task''s process.';
COMMENT ON COLUMN attempts.signal IS 'That ended the task''s process.';
COMMENT ON COLUMN attempts.output IS 'What it wrote: lines with stream and time, head and tail, dropped bytes counted.';
COMMENT ON COLUMN attempts.late_outcome IS 'What its worker wanted to record after the attempt had been ended as lost.';
COMMENT ON COLUMN attempts.late_at IS 'When.';

CREATE TABLE gaps (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id       uuid NOT NULL REFERENCES jobs (id),
    first_firing timestamptz NOT NULL,
    last_firing  timestamptz NOT NULL,
    count        integer NOT NULL CHECK (count >= 1),
    reason       text NOT NULL,
    recorded_at  timestamptz NOT NULL,
    CHECK (first_firing <= last_firing)
);
CREATE INDEX gaps_of_job ON gaps (job_id, first_firing);

COMMENT ON TABLE gaps IS 'Runs of nominal firings that were not executed.';
COMMENT ON COLUMN gaps.id IS 'Serial.';
COMMENT ON COLUMN gaps.job_id IS 'The job.';
COMMENT ON COLUMN gaps.first_firing IS 'Nominal time of the first.';
COMMENT ON COLUMN gaps.last_firing IS 'Nominal time of the last.';
COMMENT ON COLUMN gaps.count IS 'How many.';
COMMENT ON COLUMN gaps.reason IS 'Why.';
COMMENT ON COLUMN gaps.recorded_at IS 'By the database''s clock.';

CREATE TABLE instances (
    id           uuid PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('scheduler', 'worker')),
    name         text NOT NULL,
    pid          integer NOT NULL,
    version      text NOT NULL,
    pools        text[] NOT NULL DEFAULT '{}',
    slots        integer NOT NULL DEFAULT 0,
    seat         uuid,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    ready        boolean NOT NULL DEFAULT false,
    stopped_at   timestamptz
);
CREATE INDEX instances_seat ON instances (seat) WHERE seat IS NOT NULL AND stopped_at IS NULL;

COMMENT ON TABLE instances IS 'Scheduler and worker processes, one row a process start.';
COMMENT ON COLUMN instances.id IS 'Drawn at the process''s start; executions.worker_id.';
COMMENT ON COLUMN instances.kind IS 'scheduler or worker.';
COMMENT ON COLUMN instances.name IS 'SEXTON_INSTANCE.';
COMMENT ON COLUMN instances.pid IS 'Of the process, on its host.';
COMMENT ON COLUMN instances.version IS 'Of the program.';
COMMENT ON COLUMN instances.pools IS 'That a worker consumes from.';
COMMENT ON COLUMN instances.slots IS 'How many tasks a worker runs at once.';
COMMENT ON COLUMN instances.seat IS 'Identity of the lock file the process holds; whoever holds it next knows this one is dead.';
COMMENT ON COLUMN instances.started_at IS 'By the database''s clock.';
COMMENT ON COLUMN instances.heartbeat_at IS 'By the database''s clock; written every few seconds.';
COMMENT ON COLUMN instances.ready IS 'As its own /readyz said at the last heartbeat.';
COMMENT ON COLUMN instances.stopped_at IS 'When it said goodbye, or was found dead.';

CREATE TABLE operator_actions (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           timestamptz NOT NULL,
    actor        text NOT NULL,
    action       text NOT NULL,
    job_id       uuid,
    execution_id uuid,
    reason       text,
    before       jsonb,
    after        jsonb
);
CREATE INDEX operator_actions_execution ON operator_actions (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX operator_actions_job ON operator_actions (job_id) WHERE job_id IS NOT NULL;

COMMENT ON TABLE operator_actions IS 'Append-only: who did what, when, why. Without foreign keys: it outlives what it tells of.';
COMMENT ON COLUMN operator_actions.id IS 'Serial.';
COMMENT ON COLUMN operator_actions.at IS 'By the database''s clock.';
COMMENT ON COLUMN operator_actions.actor IS 'The operator, or the worker that accepted a move by hand.';
COMMENT ON COLUMN operator_actions.action IS 'A word: requeue, hand_requeue, discard, restore, cancel, pause, resume, trigger, apply …';
COMMENT ON COLUMN operator_actions.job_id IS 'The job, where one is meant.';
COMMENT ON COLUMN operator_actions.execution_id IS 'The execution, where one is meant.';
COMMENT ON COLUMN operator_actions.reason IS 'As given.';
COMMENT ON COLUMN operator_actions.before IS 'What was.';
COMMENT ON COLUMN operator_actions.after IS 'What is.';

CREATE FUNCTION operator_actions_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'operator_actions is append-only';
END $$;
CREATE TRIGGER operator_actions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_actions
    FOR EACH STATEMENT EXECUTE FUNCTION operator_actions_are_append_only();
