//! What monitors counted, written down by triggers of the arena's database, past everything that Sexton keeps.

use anyhow::Result;
use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio::time::timeout;
use uuid::Uuid;

use super::oracle::deadlines::Deadline;
use super::rows::QUERY_TIMEOUT;

/// Creates what writes it down.
pub(super) async fn prepare(pool: &PgPool) -> Result<()> {
    // 0 is the attempt of a missed limit. A planner's looks show when a scheduler reached the database.
    let statements = sqlx::raw_sql(
        "CREATE TABLE torture_alarms (execution uuid, attempt int, at timestamptz, PRIMARY KEY (execution, attempt));
         CREATE TABLE torture_looks (at timestamptz PRIMARY KEY);
         CREATE FUNCTION torture_count() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO public.torture_alarms SELECT key::uuid, value::int, now() FROM jsonb_each_text(NEW.counted)
             WHERE OLD.counted->>key IS DISTINCT FROM value ON CONFLICT DO NOTHING;
             RETURN NULL;
         END $$;
         CREATE TRIGGER torture_count AFTER UPDATE OF counted ON sexton.job_monitors
             FOR EACH ROW EXECUTE FUNCTION torture_count();
         CREATE FUNCTION torture_look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO public.torture_looks VALUES (NEW.seen_at) ON CONFLICT DO NOTHING;
             RETURN NULL;
         END $$;
         CREATE TRIGGER torture_look AFTER INSERT OR UPDATE ON sexton.planner_clock
             FOR EACH ROW EXECUTE FUNCTION torture_look()",
    );
    timeout(QUERY_TIMEOUT, statements.execute(pool)).await??;
    Ok(())
}

/// All executions that had to succeed in time, the planners' looks, and the database's time.
pub(super) async fn evidence(
    pool: &PgPool,
) -> Result<(Vec<Deadline>, Vec<DateTime<Utc>>, DateTime<Utc>)> {
    type Row = (
        Uuid,
        DateTime<Utc>,
        DateTime<Utc>,
        Option<DateTime<Utc>>,
        Option<DateTime<Utc>>,
        bool,
        bool,
        bool,
    );
    let now = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(pool);
    let now = timeout(QUERY_TIMEOUT, now).await??;
    let looks = sqlx::query_scalar("SELECT at FROM torture_looks ORDER BY at").fetch_all(pool);
    let looks = timeout(QUERY_TIMEOUT, looks).await??;
    // Rows that were made to be past retention never ran, and a question is no run of what it asks about. What a person
    // discarded may have been noticed before or not: nobody knows when it failed. A firing that counted before it was claimed
    // has its incident from then.
    let rows = sqlx::query_as(
        "SELECT e.id, d.deadline,
                CASE WHEN e.state = 'failed' THEN e.finished_at ELSE greatest(d.deadline, e.claimed_at) END,
                CASE WHEN e.state <> 'failed' THEN e.finished_at END,
                CASE WHEN e.state = 'succeeded' AND e.outcome IS DISTINCT FROM 'verified' THEN e.finished_at END,
                late.at IS NOT NULL, EXISTS (SELECT FROM torture_alarms f WHERE f.execution = e.id AND f.attempt > 0),
                late.at IS NOT NULL AND e.claimed_at < d.deadline AND NOT EXISTS (
                    SELECT FROM sexton.incidents i WHERE i.subject_kind = 'job' AND i.subject = e.job_id::text
                    AND i.opened_at <= late.at AND (i.resolved_at IS NULL OR i.resolved_at >= late.at))
         FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
         CROSS JOIN LATERAL (SELECT e.scheduled_for + j.expect_within_ms * interval '1 ms' AS deadline) d
         LEFT JOIN torture_alarms late ON late.execution = e.id AND late.attempt = 0
         WHERE j.expect_within_ms IS NOT NULL AND e.state NOT IN ('skipped', 'discarded') AND e.backfill IS NULL
           AND e.asks_about IS NULL AND e.started_at IS NOT NULL AND e.claimed_at > now() - interval '1 day'",
    );
    let rows: Vec<Row> = timeout(QUERY_TIMEOUT, rows.fetch_all(pool)).await??;
    let deadline = |(
        execution,
        deadline,
        from,
        until,
        succeeded_at,
        counted_late,
        counted_failed,
        silent,
    ): Row| Deadline {
        execution,
        deadline,
        from,
        until,
        succeeded_at,
        counted_late,
        counted_failed,
        silent,
    };
    Ok((rows.into_iter().map(deadline).collect(), looks, now))
}
