-- Checks of foreign jobs, and the pings that these send.
SET LOCAL lock_timeout = '3s';

CREATE TABLE sexton.ping_keys (
    name       text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,62}$'),
    key_hash   bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    max_checks integer NOT NULL CHECK (max_checks BETWEEN 0 AND 100000),
    created_at timestamptz NOT NULL,
    created_by text NOT NULL
);
COMMENT ON TABLE sexton.ping_keys IS 'Keys with which foreign jobs ping checks by name, and create them.';
COMMENT ON COLUMN sexton.ping_keys.name IS 'Unique.';
COMMENT ON COLUMN sexton.ping_keys.key_hash IS 'SHA-256 of the key, which is stored nowhere.';
COMMENT ON COLUMN sexton.ping_keys.max_checks IS 'The number of checks of this key beyond which no ping creates one; 0: pings create none.';
COMMENT ON COLUMN sexton.ping_keys.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.ping_keys.created_by IS 'Who created it.';

CREATE TABLE sexton.checks (
    id              uuid PRIMARY KEY,
    name            text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),
    ping_key        text REFERENCES sexton.ping_keys (name) ON DELETE SET NULL,
    every_ms        bigint CHECK (every_ms > 0),
    schedule        text CHECK (length(schedule) <= 1000),
    timezone        text NOT NULL DEFAULT 'UTC',
    grace_ms        bigint NOT NULL CHECK (grace_ms > 0),
    early_by_ms     bigint CHECK (early_by_ms >= 0),
    max_runtime_ms  bigint CHECK (max_runtime_ms > 0),
    alert_after     integer CHECK (alert_after BETWEEN 1 AND 100),
    recover_after   integer CHECK (recover_after BETWEEN 1 AND 100),
    remind_every_ms bigint CHECK (remind_every_ms > 0),
    severity        text CHECK (severity IN ('low', 'medium', 'high')),
    labels          jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
    is_paused       boolean NOT NULL DEFAULT false,
    created_at      timestamptz NOT NULL,
    changed_at      timestamptz NOT NULL,
    deleted_at      timestamptz,
    next_check_at   timestamptz NOT NULL,
    checked_at      timestamptz NOT NULL,
    violations      integer NOT NULL DEFAULT 0 CHECK (violations >= 0),
    violated_at     timestamptz,
    counted         bigint[] NOT NULL DEFAULT '{}' CHECK (cardinality(counted) <= 1000),
    settled_to      timestamptz,
    is_open         boolean NOT NULL DEFAULT false,
    trim_at         timestamptz NOT NULL DEFAULT '-infinity',
    CHECK ((every_ms IS NULL) <> (schedule IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
CREATE UNIQUE INDEX checks_name ON sexton.checks (name) WHERE deleted_at IS NULL;
-- Which checks are due, in this order.
CREATE INDEX checks_due ON sexton.checks (next_check_at);
-- Whose pings are to be looked at.
CREATE INDEX checks_to_trim ON sexton.checks (trim_at);
CREATE INDEX checks_of_key ON sexton.checks (ping_key) WHERE ping_key IS NOT NULL;
COMMENT ON TABLE sexton.checks IS 'Jobs that run elsewhere and report by pings, and what schedulers know of them.';
COMMENT ON COLUMN sexton.checks.id IS 'UUID version 4: who knows it may ping.';
COMMENT ON COLUMN sexton.checks.name IS 'Unique among those that are not deleted; also the name in the address of a ping with a key.';
COMMENT ON COLUMN sexton.checks.ping_key IS 'The key that may ping it by name; null: none may.';
COMMENT ON COLUMN sexton.checks.every_ms IS 'Milliseconds from one ping to the next; null: by schedule.';
COMMENT ON COLUMN sexton.checks.schedule IS 'Cron expression; null: by period.';
COMMENT ON COLUMN sexton.checks.timezone IS 'The zone of the schedule.';
COMMENT ON COLUMN sexton.checks.grace_ms IS 'Milliseconds that a ping may be late.';
COMMENT ON COLUMN sexton.checks.early_by_ms IS 'Milliseconds before its time at which a ping counts already; null: a tenth of the distance, at most 5 minutes.';
COMMENT ON COLUMN sexton.checks.max_runtime_ms IS 'Milliseconds from the start ping to the end; null: grace_ms.';
COMMENT ON COLUMN sexton.checks.alert_after IS 'The number of violations in a row that open an incident; null: 1.';
COMMENT ON COLUMN sexton.checks.recover_after IS 'The number of successes that resolve the incident; null: 1.';
COMMENT ON COLUMN sexton.checks.remind_every_ms IS 'Milliseconds between reminders of an open incident that nobody acknowledged; null: none.';
COMMENT ON COLUMN sexton.checks.severity IS 'Severity of its incidents: low, medium or high; null: medium.';
COMMENT ON COLUMN sexton.checks.labels IS 'For routes.';
COMMENT ON COLUMN sexton.checks.is_paused IS 'Nothing is expected while it is paused.';
COMMENT ON COLUMN sexton.checks.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.checks.changed_at IS 'When what it expects last changed: expectations count from then on.';
COMMENT ON COLUMN sexton.checks.deleted_at IS 'When it was deleted; a few minutes later a scheduler removes it with its pings. Null: it was not.';
COMMENT ON COLUMN sexton.checks.next_check_at IS 'The earliest instant at which an expectation can be missed; infinity: only a ping can change anything.';
COMMENT ON COLUMN sexton.checks.checked_at IS 'When a scheduler last checked it, by the database''s clock.';
COMMENT ON COLUMN sexton.checks.violations IS 'Violations in a row.';
COMMENT ON COLUMN sexton.checks.violated_at IS 'When the last of these happened; null: none.';
COMMENT ON COLUMN sexton.checks.counted IS 'Pings (pings.id) that are counted as violations already.';
COMMENT ON COLUMN sexton.checks.settled_to IS 'Up to when what was expected is settled: missed, or forgiven for a pause of the endpoint; null: nothing.';
COMMENT ON COLUMN sexton.checks.is_open IS 'Whether it had an open incident when it was last checked: its pings are looked at at once.';
COMMENT ON COLUMN sexton.checks.trim_at IS 'When its old pings are removed next, and with them a deleted check.';

CREATE TABLE sexton.pings (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    check_id  uuid NOT NULL,
    at        timestamptz NOT NULL,
    kind      text NOT NULL CHECK (kind IN ('start', 'success', 'fail', 'log')),
    exit_code integer CHECK (exit_code BETWEEN 0 AND 255),
    rid       uuid,
    body      text CHECK (octet_length(body) <= 30000),
    agent     text CHECK (length(agent) <= 200)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
-- The newest pings of a check; logs apart, so that many of them push out no other.
CREATE INDEX pings_of_check ON sexton.pings (check_id, (kind = 'log'), id);
COMMENT ON TABLE sexton.pings IS 'What foreign jobs report: of each check the newest. Without a foreign key, which would lock a row of checks for each ping.';
COMMENT ON COLUMN sexton.pings.id IS 'In the order in which they were written.';
COMMENT ON COLUMN sexton.pings.check_id IS 'The check.';
COMMENT ON COLUMN sexton.pings.at IS 'When it arrived, by the database''s clock.';
COMMENT ON COLUMN sexton.pings.kind IS 'start, success, fail or log.';
COMMENT ON COLUMN sexton.pings.exit_code IS 'The exit status that it reports; null: none.';
COMMENT ON COLUMN sexton.pings.rid IS 'The run that it belongs to; null: not said.';
COMMENT ON COLUMN sexton.pings.body IS 'The first 10,000 bytes of what it sent along, as text; null: nothing.';
COMMENT ON COLUMN sexton.pings.agent IS 'The program that sent it, as it calls itself.';

-- Appended to by pings that can change a check at once, so that no ping waits for a check. A scheduler removes the rows and
-- checks within a second.
CREATE TABLE sexton.check_wakeups (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    check_id uuid NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE sexton.check_wakeups IS 'Checks that are to be looked at at once.';
COMMENT ON COLUMN sexton.check_wakeups.id IS 'In the order in which they were requested.';
COMMENT ON COLUMN sexton.check_wakeups.check_id IS 'The check.';

CREATE TABLE sexton.ping_endpoint (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    paused_from timestamptz,
    up_since    timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE sexton.ping_endpoint IS 'When pings were accepted: what the last pause may have swallowed is not missed.';
COMMENT ON COLUMN sexton.ping_endpoint.one IS 'The only row.';
COMMENT ON COLUMN sexton.ping_endpoint.paused_from IS 'When the last pause of 10 seconds or more began; null: none has ever been.';
COMMENT ON COLUMN sexton.ping_endpoint.up_since IS 'When it ended, or when pings were first accepted.';
COMMENT ON COLUMN sexton.ping_endpoint.seen_at IS 'When one of them last said so, by the database''s clock.';
