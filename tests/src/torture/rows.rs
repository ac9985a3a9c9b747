//! What the database says, past everything that Sexton does.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::time::timeout;
use uuid::Uuid;

use super::jobs;
use super::ledger::Entry;
use super::oracle::{Action, AttemptRow, Evidence, Firings};
use super::progress::Counts;

/// A server that is being struck may not answer at all.
pub(super) const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// States in which an execution waits or runs.
const UNDER_WAY: &str = "('pending', 'running', 'retrying')";

/// The ids of the executions for which `condition` holds, in the order of their claims.
pub(super) async fn ids(pool: &PgPool, condition: &str) -> Result<Vec<Uuid>> {
    let statement = format!(
        "SELECT e.id FROM sexton.executions e WHERE {condition} ORDER BY e.claimed_at, e.id"
    );
    let rows = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_all(pool);
    Ok(timeout(QUERY_TIMEOUT, rows).await??)
}

/// The instant by the database's clock, as text that a statement takes back.
pub(super) async fn clock(pool: &PgPool) -> Result<String> {
    let now = sqlx::query_scalar("SELECT clock_timestamp()::text").fetch_one(pool);
    Ok(timeout(QUERY_TIMEOUT, now).await??)
}

/// The condition that an execution is under way.
pub(super) fn under_way() -> String {
    format!("e.state IN {UNDER_WAY}")
}

/// The condition that an execution has not come to its end: a failed one has when its ticket is
/// parked.
pub(super) fn open_end() -> String {
    format!("({} OR e.state = 'failed' AND e.ticket_published_at IS NULL)", under_way())
}

/// Changes rows; returns how many.
pub(super) async fn change(pool: &PgPool, statement: &'static str) -> Result<u64> {
    let done = timeout(QUERY_TIMEOUT, sqlx::query(statement).execute(pool)).await??;
    Ok(done.rows_affected())
}

/// As [`change`], with a text for `$1`.
pub(super) async fn change_with(pool: &PgPool, statement: &'static str, text: &str) -> Result<u64> {
    let change = sqlx::query(statement).bind(text.to_owned());
    let done = timeout(QUERY_TIMEOUT, change.execute(pool)).await??;
    Ok(done.rows_affected())
}

/// Of `ids`, those that have not come to their end.
pub(super) async fn without_end(pool: &PgPool, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    let statement =
        format!("SELECT e.id FROM sexton.executions e WHERE e.id = ANY ($1) AND {}", open_end());
    let rows = sqlx::query_scalar(AssertSqlSafe(statement)).bind(ids).fetch_all(pool);
    Ok(timeout(QUERY_TIMEOUT, rows).await??)
}

/// State and attempt number of an execution.
pub(super) async fn state(pool: &PgPool, id: Uuid) -> Result<(String, i32)> {
    let row = sqlx::query_as("SELECT state, attempt FROM sexton.executions WHERE id = $1").bind(id);
    Ok(timeout(QUERY_TIMEOUT, row.fetch_one(pool)).await??)
}

/// A row as it is, for a person.
pub(super) async fn describe(pool: &PgPool, id: Uuid) -> String {
    let row = sqlx::query_scalar(
        "SELECT format('%s at attempt %s of %s, rev %s, published %s, due %s, lease until %s, now %s',
                       e.state, e.attempt, j.name, e.rev, e.ticket_published_at, e.next_attempt_at,
                       e.lease_until, now())
         FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE e.id = $1",
    )
    .bind(id)
    .fetch_one(pool);
    match timeout(QUERY_TIMEOUT, row).await {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the database does not answer".to_owned(),
    }
}

/// What has happened since `since`, or ever, as far as the rows know; the ledgers are still to be added.
pub(super) async fn evidence(pool: &PgPool, since: Option<DateTime<Utc>>) -> Result<Evidence> {
    // Firings first: whatever was decided on before them has its gaps by the time those are read.
    let firings = firings(pool).await?;
    let attempts = attempts(pool, since.unwrap_or(DateTime::UNIX_EPOCH)).await?;
    let actions: Vec<(Uuid, String, DateTime<Utc>)> = sqlx::query_as(
        "SELECT execution_id, action, at FROM sexton.operator_actions WHERE execution_id IS NOT NULL",
    )
    .fetch_all(pool)
    .await?;
    let actions = actions.into_iter();
    let actions = actions.map(|(execution, action, at)| Action { execution, action, at }).collect();
    let double_keys = sqlx::query_scalar(
        "SELECT min(idempotency_key) FROM sexton.executions GROUP BY job_id, execution_key
         HAVING count(*) > 1",
    )
    .fetch_all(pool)
    .await?;
    // Rows that were made to be past retention never ran.
    let unproven = sqlx::query_scalar(
        "SELECT e.id FROM sexton.executions e
         WHERE e.state = 'succeeded' AND e.claimed_at > now() - interval '1 day'
           AND e.outcome IS DISTINCT FROM 'verified'
           AND NOT EXISTS (SELECT FROM sexton.all_attempts a
                           WHERE a.execution_id = e.id AND a.outcome = 'succeeded')",
    )
    .fetch_all(pool)
    .await?;
    let resolved = ids(pool, "e.outcome = 'verified'").await?;
    let held = held(pool).await?;
    let whole = since.is_none();
    Ok(Evidence {
        attempts,
        whole,
        unproven,
        resolved,
        held,
        firings,
        actions,
        double_keys,
        ..Evidence::default()
    })
}

/// Bulks that count otherwise than their items say, or have not recorded once what they did to each.
async fn held(pool: &PgPool) -> Result<Vec<String>> {
    let wrong = sqlx::query_scalar(
        "SELECT format('bulk %s counts %s done, %s refused, %s resolved, %s left, of %s items', b.id, b.done,
                       b.refused, b.resolved, b.left_alone, b.selected)
         FROM sexton.bulks b, LATERAL (
             SELECT count(*) AS selected, count(*) FILTER (WHERE state = 'done') AS done,
                    count(*) FILTER (WHERE state = 'refused') AS refused,
                    count(*) FILTER (WHERE state = 'resolved') AS resolved,
                    count(*) FILTER (WHERE state = 'left') AS left_alone
             FROM sexton.bulk_items WHERE bulk_id = b.id) i
         WHERE (b.selected, b.done, b.refused, b.resolved, b.left_alone)
               IS DISTINCT FROM (i.selected, i.done, i.refused, i.resolved, i.left_alone)
         UNION ALL
         SELECT format('bulk %s has %s %s and recorded it %s times', i.bulk_id, i.state, i.execution_id, a.n)
         FROM sexton.bulk_items i JOIN sexton.bulks b ON b.id = i.bulk_id, LATERAL (
             SELECT count(*) AS n FROM sexton.operator_actions a
             WHERE a.execution_id = i.execution_id AND a.bulk_id = i.bulk_id
               AND a.action = CASE i.state WHEN 'resolved' THEN 'resolve' ELSE b.kind END) a
         WHERE a.n <> (i.state IN ('done', 'resolved'))::int",
    );
    Ok(timeout(QUERY_TIMEOUT, wrong.fetch_all(pool)).await??)
}

/// Bulks that go on, and questions that nobody has heard of those that are done. What an operator stopped, or
/// what waits for his command, is left out: a try that broke off in the middle may leave one.
pub(super) async fn unfinished_bulks(pool: &PgPool) -> Result<Vec<String>> {
    let left = sqlx::query_scalar(
        "SELECT format('bulk %s is %s', id, state) FROM sexton.bulks
         WHERE state IN ('preparing', 'running') AND verify IS DISTINCT FROM 'command'
         UNION ALL
         SELECT format('question %s of bulk %s is not heard', q.question, b.id)
         FROM sexton.bulk_questions q JOIN sexton.bulks b ON b.id = q.bulk_id WHERE q.answer IS NULL AND b.state = 'done'",
    );
    Ok(timeout(QUERY_TIMEOUT, left.fetch_all(pool)).await??)
}

async fn attempts(pool: &PgPool, since: DateTime<Utc>) -> Result<Vec<AttemptRow>> {
    type Row = (
        Uuid,
        i32,
        DateTime<Utc>,
        Option<String>,
        Option<DateTime<Utc>>,
        Option<String>,
        Option<i64>,
    );
    // Numbers may be left out: a ticket that nobody could open has one, and no attempt.
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT a.execution_id, a.number, a.opened_at, a.outcome, p.finished_at, p.outcome,
                j.retry_delay_ms
         FROM sexton.all_attempts a
         JOIN sexton.executions e ON e.id = a.execution_id JOIN sexton.jobs j ON j.id = e.job_id
         LEFT JOIN LATERAL (SELECT b.finished_at, b.outcome FROM sexton.all_attempts b
                            WHERE b.execution_id = a.execution_id AND b.number < a.number
                            ORDER BY b.number DESC LIMIT 1) p ON true
         -- A question is no run of what it asks about.
         WHERE a.opened_at >= $1 AND e.asks_about IS NULL",
    )
    .bind(since)
    .fetch_all(pool)
    .await?;
    let attempt = |(execution, number, opened_at, outcome, ended, how, delay): Row| AttemptRow {
        execution,
        number,
        opened_at,
        outcome,
        previous: ended.zip(how),
        retry_delay: TimeDelta::milliseconds(delay.unwrap_or(0)),
    };
    Ok(rows.into_iter().map(attempt).collect())
}

/// Of the job that is due every second whatever is under way.
async fn firings(pool: &PgPool) -> Result<Firings> {
    let claimed = sqlx::query_scalar(
        "SELECT e.scheduled_for FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
         WHERE j.name = $1 AND e.scheduled_for IS NOT NULL",
    )
    .bind(jobs::LOAD)
    .fetch_all(pool)
    .await?;
    let gaps = sqlx::query_as(
        "SELECT g.first_firing, g.last_firing FROM sexton.gaps g JOIN sexton.jobs j ON j.id = g.job_id
         WHERE j.name = $1",
    )
    .bind(jobs::LOAD)
    .fetch_all(pool)
    .await?;
    Ok(Firings { claimed, gaps, cursor: None })
}

/// When that job is due next.
pub(super) async fn cursor(pool: &PgPool) -> Result<Option<DateTime<Utc>>> {
    let cursor = sqlx::query_scalar("SELECT next_fire_at FROM sexton.jobs WHERE name = $1");
    Ok(timeout(QUERY_TIMEOUT, cursor.bind(jobs::LOAD).fetch_one(pool)).await??)
}

/// What is counted in the report.
pub(super) async fn counts(pool: &PgPool, ledger: &[Entry]) -> Result<Counts> {
    let (executions, attempts): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM sexton.executions WHERE state <> 'skipped'),
                (SELECT count(*) FROM sexton.all_attempts)",
    )
    .fetch_one(pool)
    .await?;
    let lost: Vec<(Uuid, i32)> = sqlx::query_as(
        "SELECT execution_id, number FROM sexton.all_attempts WHERE outcome = 'lost'",
    )
    .fetch_all(pool)
    .await?;
    let lost: HashSet<(Uuid, i32)> = lost.into_iter().collect();
    let begins = || {
        ledger.iter().filter_map(|entry| match entry {
            Entry::Begin { execution, attempt, .. } => Some((*execution, *attempt)),
            _ => None,
        })
    };
    Ok(Counts {
        executions: executions as u64,
        attempts: attempts as u64,
        runs: begins().count() as u64,
        reruns: begins().filter(|run| lost.contains(run)).count() as u64,
        ..Counts::default()
    })
}
