//! What else a platform has that has run for long: its audit, incidents, bulks, flows, checks, locks, workers and approvals.
//!
//! Each statement gets one number, and follows from it and from the executions that [`fill`](super::fill) wrote.

use anyhow::{Context as _, Result};
use sexton_store::Store;

use super::data::vacuum;

/// How many rows of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlatformRows {
    /// Actions in the audit, over thirty days.
    pub actions: i64,
    /// Incidents, of which the last fifty are open.
    pub incidents: i64,
    /// Bulks of twenty items each.
    pub bulks: i64,
    /// Flows of four members each.
    pub flows: i64,
    /// Checks of a hundred pings each.
    pub checks: i64,
    /// Rows that are locks, half of them held.
    pub lock_rows: i64,
    /// Workers that run eight executions each.
    pub workers: i64,
    /// Unknown messages in the failed queue.
    pub unknown_messages: i64,
    /// Requests for approval, of which the last hundred wait.
    pub approvals: i64,
    /// Firings of the job `team.quarter`, each with an execution that wrote output.
    pub firings: i64,
}

impl PlatformRows {
    /// Those of a large platform.
    pub const LARGE: Self = Self {
        actions: 100_000,
        incidents: 10_000,
        bulks: 1_000,
        flows: 10_000,
        checks: 1_000,
        lock_rows: 1_000,
        workers: 100,
        unknown_messages: 1_000,
        approvals: 1_000,
        firings: 2_880,
    };
}

/// Adds these rows to a database that [`fill`](super::fill) has filled. Vacuums and analyses their tables afterwards.
///
/// # Errors
///
/// Those of the database.
pub async fn fill_platform_rows(store: &Store, rows: PlatformRows) -> Result<()> {
    let statements = [
        (FLOWS, rows.flows),
        (ACTIONS, rows.actions),
        (INCIDENTS, rows.incidents),
        (BULKS, rows.bulks),
        (CHECKS, rows.checks),
        (LOCK_ROWS, rows.lock_rows),
        (WORKERS, rows.workers),
        (UNKNOWN_MESSAGES, rows.unknown_messages),
        (APPROVALS, rows.approvals),
        (FIRINGS, rows.firings),
    ];
    let mut connection = store.pool().acquire().await?;
    sqlx::query("SET statement_timeout = 0").execute(&mut *connection).await?;
    for (statement, count) in statements {
        sqlx::query(statement).bind(count).execute(&mut *connection).await.context(statement)?;
    }
    sqlx::query(CHANNEL).execute(&mut *connection).await?;
    sqlx::query(OUTPUT).execute(&mut *connection).await?;
    let seal = "SELECT more FROM sexton.seal_operator_actions(10000)";
    let mut more = true;
    while more {
        more = sqlx::query_scalar(seal).fetch_one(&mut *connection).await?;
    }
    vacuum(&mut connection, &TABLES).await?;
    sqlx::query("RESET statement_timeout").execute(&mut *connection).await?;
    Ok(())
}

const TABLES: [&str; 23] = [
    "approval_requests",
    "attempt_output",
    "attempts",
    "audit_seals",
    "audit_unsealed",
    "bulk_items",
    "bulks",
    "channels",
    "checks",
    "executions",
    "flow_edges",
    "flow_members",
    "flows",
    "incident_events",
    "incidents",
    "instances",
    "jobs",
    "lock_rows",
    "notifications",
    "offers",
    "operator_actions",
    "pings",
    "unknown_messages",
];

/// The newest executions become their members; one that is failed is the last of its flow, and keeps it open.
const FLOWS: &str = "
    WITH newest AS MATERIALIZED (
        SELECT id, state, claimed_at, (row_number() OVER (ORDER BY id DESC) - 1) / 4 AS flow
        FROM (SELECT id, state, claimed_at FROM sexton.executions
              WHERE state IN ('succeeded', 'failed') ORDER BY id DESC LIMIT 4 * $1::bigint) e),
    member AS MATERIALIZED (
        SELECT *, md5('flow ' || flow)::uuid AS flow_id,
               row_number() OVER (PARTITION BY flow ORDER BY state = 'failed', id) AS place
        FROM newest),
    made AS (
        INSERT INTO sexton.flows (id, name, created_by, created_at, members, open, ended_at)
        SELECT flow_id, 'order-' || flow % 20, 'test:1', min(claimed_at), count(*),
               count(*) FILTER (WHERE state = 'failed'),
               CASE WHEN bool_and(state <> 'failed') THEN max(claimed_at) END
        FROM member GROUP BY flow_id, flow),
    edge AS (
        INSERT INTO sexton.flow_edges (upstream, downstream)
        SELECT u.id, d.id FROM member u JOIN member d ON d.flow = u.flow WHERE d.place = 4 AND u.place < 4),
    marked AS (
        UPDATE sexton.executions e SET flow_id = m.flow_id FROM member m WHERE e.id = m.id)
    INSERT INTO sexton.flow_members (execution_id, flow_id, name, runs_when, on_discard, waits_for, decided, ended, counted)
    SELECT id, flow_id, 'step-' || place, 'all_succeeded', 'skip', 0, true, state <> 'failed', state <> 'failed'
    FROM member";

/// Two for each of the newest failed executions, if there are so many.
const ACTIONS: &str = "
    INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id, reason, before, after)
    SELECT now() - interval '30 days' * (1 - n::float8 / $1::bigint), 'operator-' || n % 20,
           (ARRAY['requeue', 'discard', 'restore', 'pause'])[1 + n % 4],
           coalesce(f.job_id, lpad(to_hex(n % 200), 32, '0')::uuid),
           CASE WHEN n % 4 < 3 THEN f.execution_id END, 'reason ' || n % 100,
           jsonb_build_object('state', 'failed'), jsonb_build_object('state', 'pending')
    FROM generate_series(1, $1::bigint) n
    LEFT JOIN (SELECT execution_id, job_id, row_number() OVER (ORDER BY execution_id DESC) AS place
               FROM (SELECT execution_id, job_id FROM sexton.failures ORDER BY execution_id DESC LIMIT 50000) newest) f
         ON f.place = 1 + n % 50000";

const INCIDENTS: &str = "
    WITH made AS (
        INSERT INTO sexton.incidents (id, subject_kind, subject, name, cause, severity, labels, detail, job_id, state,
            occurrences, opened_at, changed_at, resolved_at, resolved_by)
        SELECT md5('incident ' || n)::uuid, 'job', job::text, 'team.job' || n % 200,
               (ARRAY['failed', 'missed', 'late'])[1 + n % 3], (ARRAY['low', 'medium', 'high'])[1 + n % 3],
               jsonb_build_object('team', 't' || n % 10), 'exit code 3: order ' || n || ' declined by bank', job,
               CASE WHEN is_open THEN 'open' ELSE 'resolved' END, 5, at, at + interval '5 minutes',
               CASE WHEN NOT is_open THEN at + interval '5 minutes' END, CASE WHEN NOT is_open THEN 'sexton' END
        FROM generate_series(1, $1::bigint) n,
             LATERAL (SELECT now() - interval '30 days' * (1 - n::float8 / $1::bigint) AS at,
                             lpad(to_hex(n % 200), 32, '0')::uuid AS job, n > $1::bigint - 50 AS is_open) a
        RETURNING id, opened_at, changed_at, state, detail),
    event AS (
        INSERT INTO sexton.incident_events (incident_id, at, kind, detail)
        SELECT id, opened_at, 'opened', detail FROM made
        UNION ALL
        SELECT id, opened_at + n * interval '1 minute', 'occurred', detail FROM made, generate_series(1, 4) n
        UNION ALL
        SELECT id, changed_at, 'resolved', NULL FROM made WHERE state = 'resolved')
    INSERT INTO sexton.notifications (id, incident_id, channel, kind, detail, created_at, due_at, state, attempts,
        first_sent_at, finished_at)
    SELECT gen_random_uuid(), id, 'ops', 'opened', detail, opened_at, opened_at,
           CASE WHEN place % 50 = 0 THEN 'parked' ELSE 'sent' END, 1, opened_at, opened_at
    FROM (SELECT *, row_number() OVER (ORDER BY opened_at) AS place FROM made) numbered";

const CHANNEL: &str = "
    INSERT INTO sexton.channels (name, kind, config, updated_at)
    VALUES ('ops', 'webhook', jsonb_build_object('url', 'https://ops.example.org/hook'), now())";

const BULKS: &str = "
    WITH made AS (
        INSERT INTO sexton.bulks (kind, selector, previewed_at, actor, reason, rate, state, prepared_at, selected, done,
            created_at, ended_at)
        SELECT 'requeue', jsonb_build_object('ids', 20), at, 'operator-' || n % 20, 'the bank answers again', '50/s',
               'done', at, 20, 20, at, at + interval '1 minute'
        FROM generate_series(1, $1::bigint) n,
             LATERAL (SELECT now() - interval '30 days' * (1 - n::float8 / $1::bigint) AS at) a
        RETURNING id)
    INSERT INTO sexton.bulk_items (bulk_id, ordinal, execution_id, seen, state)
    SELECT m.id, n, f.ids[1 + (m.id * 20 + n) % cardinality(f.ids)], 2, 'done'
    FROM made m CROSS JOIN generate_series(1, 20) n
    CROSS JOIN (SELECT array_agg(execution_id) AS ids
                FROM (SELECT execution_id FROM sexton.failures ORDER BY execution_id DESC LIMIT 20000) newest) f";

const CHECKS: &str = "
    WITH made AS (
        INSERT INTO sexton.checks (id, name, every_ms, grace_ms, created_at, changed_at, next_check_at, checked_at)
        SELECT md5('check ' || n)::uuid, 'backup-' || n, 3600000, 600000, now() - interval '30 days',
               now() - interval '30 days', now() + interval '1 day', now()
        FROM generate_series(1, $1::bigint) n
        RETURNING id)
    INSERT INTO sexton.pings (check_id, at, kind, exit_code, body, agent)
    SELECT id, now() - (100 - n) * interval '1 hour', 'success', 0, 'copied ' || n || ' files', 'curl/8.5.0'
    FROM generate_series(1, 100) n, made ORDER BY n";

const LOCK_ROWS: &str = "
    INSERT INTO sexton.lock_rows (name, lock_until, locked_at, locked_by)
    SELECT 'row-' || n,
           timezone('utc', now()) + CASE WHEN n % 2 = 0 THEN interval '1 day' ELSE interval '-1 hour' END,
           timezone('utc', now()) - interval '2 hours', 'host-' || n % 20
    FROM generate_series(1, $1::bigint) n";

const WORKERS: &str = "
    WITH made AS (
        INSERT INTO sexton.instances (id, kind, name, pid, version, pools, slots, started_at, heartbeat_at, ready)
        SELECT md5('worker ' || n)::uuid, 'worker', 'worker-' || n, n, '0.1.0', ARRAY['pool-' || n % 5], 80,
               now() - interval '1 day', now(), true
        FROM generate_series(1, $1::bigint) n
        RETURNING id, pid, pools),
    offer AS (
        INSERT INTO sexton.offers (instance_id, task_type)
        SELECT id, 'type_' || n FROM made, generate_series(0, 19) n)
    INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type, pool, params,
        idempotency_key, claimed_by, claimed_at, ticket_published_at, relay_after, started_at, worker_id, open_token,
        lease_until, lease_ms)
    SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7000b' || lpad(to_hex(pid * 8 + n), 15, '0'))::uuid,
           lpad(to_hex(pid % 200), 32, '0')::uuid, 'running-' || pid || '-' || n,
           now(), 'running', 1, 'type_' || pid % 20, pools[1], '{}', 'running-' || pid || '-' || n, 'test:1', now(), now(),
           now(), now(), id, gen_random_uuid(), now() + interval '1 minute', 60000
    FROM made, generate_series(1, 8) n";

const UNKNOWN_MESSAGES: &str = "
    INSERT INTO sexton.unknown_messages (digest, kind, reason, body, body_bytes, properties, copies, first_seen, last_seen)
    SELECT sha256(body), 'foreign', 'no worker runs the task report', body, length(body), '{}', 1,
           now() - interval '30 days' * (1 - n::float8 / $1::bigint), now()
    FROM generate_series(1, $1::bigint) n,
         LATERAL (SELECT convert_to('{\"type\":\"report\",\"order\":' || n || '}', 'UTF8') AS body) b";

const APPROVALS: &str = "
    INSERT INTO sexton.approval_requests (kind, proposal, digest, people, rules, requested_by, requested_by_names, reason,
        requested_at, expires_at, state, ended_at, ended_by, outcome)
    SELECT 'discard',
           jsonb_build_object('kind', 'discard', 'execution', f.ids[1 + n % cardinality(f.ids)], 'job', 'team.job' || n % 200,
                              'attempt', 2),
           md5('digest ' || n) || md5('of ' || n), 2, ARRAY['discards'], 'operator-' || n % 20,
           ARRAY['operator-' || n % 20], 'the order was cancelled', at, at + interval '1 day',
           CASE WHEN waits THEN 'waiting' ELSE 'carried_out' END, CASE WHEN NOT waits THEN at END,
           CASE WHEN NOT waits THEN 'operator-21' END, CASE WHEN NOT waits THEN 'discarded' END
    FROM generate_series(1, $1::bigint) n
    CROSS JOIN (SELECT array_agg(execution_id) AS ids
                FROM (SELECT execution_id FROM sexton.failures ORDER BY execution_id DESC LIMIT 1000) newest) f
    CROSS JOIN LATERAL (SELECT n > $1::bigint - 100 AS waits) w
    CROSS JOIN LATERAL (
        SELECT CASE WHEN waits THEN now() ELSE now() - interval '30 days' * (1 - n::float8 / $1::bigint) END AS at) a";

/// A job that fires each quarter of an hour, with an execution of each firing so far.
const FIRINGS: &str = "
    WITH quarter AS (
        SELECT to_timestamp(floor(extract(epoch FROM now()) / 900) * 900) AS last),
    job AS (
        INSERT INTO sexton.jobs (id, name, schedule_kind, schedule_expression, task_type, params, pool, overlap,
            misfire_policy, misfire_window_ms, misfire_limit, timeout_ms, next_fire_at, planned_until, created_at,
            updated_at)
        SELECT lpad(to_hex(1000), 32, '0')::uuid, 'team.quarter', 'every', '15m', 'type_0', '{}', 'pool-0', 'allow',
               'skip', 86400000, 100, 60000, last + interval '15 minutes', last,
               last - $1::bigint * interval '15 minutes', last - $1::bigint * interval '15 minutes'
        FROM quarter
        RETURNING id)
    INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type, pool, params,
        idempotency_key, claimed_by, claimed_at, tz_version, ticket_published_at, relay_after, started_at, finished_at,
        outcome)
    SELECT (lpad(to_hex((extract(epoch FROM a.at) * 1000)::bigint), 12, '0') || '7000a' || lpad(to_hex(n), 15, '0'))::uuid,
           job.id, 'every-' || to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),
           at, 'succeeded', 1, 'type_0', 'pool-0', '{}', 'quarter-' || n, 'test:1', at, '2025b', at, at, at,
           at + interval '1 minute', 'succeeded'
    FROM job, quarter, generate_series(0, $1::bigint - 1) n,
         LATERAL (SELECT last - n * interval '15 minutes' AS at) a";

/// What the executions of those firings wrote.
const OUTPUT: &str = "
    WITH attempt AS (
        INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at, finished_at, outcome)
        SELECT id, 1, md5('worker 1')::uuid, started_at, finished_at, 'succeeded' FROM sexton.executions
        WHERE job_id = lpad(to_hex(1000), 32, '0')::uuid
        RETURNING execution_id, opened_at, finished_at)
    INSERT INTO sexton.attempt_output (execution_id, number, first_line, lines, bytes_before, bytes, from_at, to_at, content)
    SELECT execution_id, 1, 1, 100, 0, 1092, opened_at, finished_at,
           (SELECT string_agg('o' || n || ' written ' || n, E'\\n' ORDER BY n) FROM generate_series(1, 100) n)
    FROM attempt";
