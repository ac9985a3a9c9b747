//! Migration 0010, whose last statement writes a row for each job while it holds the table: with a million jobs
//! for more than a minute in which nothing is claimed. Here it is written in portions after the rest, and the
//! rows are the same.
//!
//! A job that is applied anew in between is remembered as it was by a trigger, which stays until all are done:
//! where it is there, an earlier run was interrupted.

use sqlx::migrate::Migration;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, SqlSafeStr as _};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::ProgressLog;
use super::apply::apply_in_transaction;
use crate::StoreError;
use crate::client_timeout::with_client_timeout;

/// Of the file.
pub(super) const MIGRATION_VERSION: i64 = 10;
/// Where the statement begins that is done in portions.
const LAST_STATEMENT: &str = "-- The jobs that are there:";

/// Jobs of one portion.
const BATCH_JOBS: u32 = 2_000;

/// Of the definition, what is no part of it; as in the file.
const EXCLUDED_COLUMNS: &str = "ARRAY[
    'id', 'name', 'description', 'target', 'params', 'labels', 'status', 'paused_by', 'paused_why',
    'paused_at', 'next_fire_at', 'planned_until', 'tz_version', 'revision', 'created_at',
    'updated_at', 'failures_since', 'deleted_at', 'deleted_name', 'next_nominal_at', 'runs_used']";

fn interim_trigger_sql() -> String {
    format!(
        "CREATE FUNCTION remember_former_revision() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO job_revisions (job_id, revision, valid_from, definition)
            VALUES (OLD.id, OLD.revision,
                CASE WHEN OLD.revision = 1 THEN OLD.created_at
                     ELSE coalesce((SELECT max(o.at) FROM operator_actions o
                                    WHERE o.job_id = OLD.id AND o.action = 'apply' AND o.at < NEW.updated_at),
                                   OLD.updated_at) END,
                to_jsonb(OLD) - {EXCLUDED_COLUMNS})
            ON CONFLICT DO NOTHING;
            RETURN NULL;
        END $$;
        COMMENT ON FUNCTION remember_former_revision() IS
            'Migration 0010 is not done: its last statement goes on at the next `sexton migrate`.';
        CREATE TRIGGER remember_former_revision AFTER UPDATE OF revision ON jobs
            FOR EACH ROW WHEN (OLD.revision IS DISTINCT FROM NEW.revision)
            EXECUTE FUNCTION remember_former_revision();"
    )
}

/// Jobs after $1 of which nothing is remembered, up to the last of them; null: there are none.
fn batch_sql() -> String {
    format!(
        "-- remember_jobs
        WITH next AS MATERIALIZED (SELECT id FROM jobs WHERE id > $1 ORDER BY id LIMIT {BATCH_JOBS}),
        written AS (
            INSERT INTO job_revisions (job_id, revision, valid_from, definition)
            SELECT j.id, j.revision,
                   CASE WHEN j.revision = 1 THEN j.created_at
                        ELSE coalesce((SELECT max(o.at) FROM operator_actions o
                                       WHERE o.job_id = j.id AND o.action = 'apply'), j.updated_at) END,
                   to_jsonb(j) - {EXCLUDED_COLUMNS}
            FROM next JOIN jobs j USING (id)
            WHERE NOT EXISTS (SELECT FROM job_revisions r WHERE r.job_id = j.id AND r.revision = j.revision)
            ON CONFLICT DO NOTHING)
        SELECT (SELECT id FROM next ORDER BY id DESC LIMIT 1)"
    )
}

/// Applies the file without its last statement, records it, and does what is left in portions.
pub(super) async fn apply(
    connection: &mut PgConnection,
    migration: &Migration,
    log: ProgressLog<'_>,
) -> Result<(), StoreError> {
    let text = migration.sql.as_str();
    // Without it the file is applied as it stands: it is slower, and does the same.
    let Some((most, _)) = text.split_once(LAST_STATEMENT) else {
        apply_in_transaction(connection, migration.sql.clone(), Some(migration), log).await?;
        return Ok(());
    };
    let most = AssertSqlSafe(format!("{most}{}", interim_trigger_sql())).into_sql_str();
    apply_in_transaction(connection, most, Some(migration), log).await?;
    resume(connection, log).await
}

/// Does what is left, if anything is: here, or after a run that was interrupted.
pub(super) async fn resume(
    connection: &mut PgConnection,
    log: ProgressLog<'_>,
) -> Result<(), StoreError> {
    let left = sqlx::query_scalar(
        "-- jobs_to_remember
        SELECT count(*) > 0 FROM pg_proc
        WHERE proname = 'remember_former_revision' AND pronamespace = current_schema()::text::regnamespace",
    );
    if !with_client_timeout(left.fetch_one(&mut *connection)).await? {
        return Ok(());
    }
    let statement = batch_sql();
    let mut after = Some(Uuid::nil());
    while let Some(id) = after {
        let began = Instant::now();
        let next = sqlx::query_scalar(AssertSqlSafe(statement.clone()));
        after = with_client_timeout(next.bind(id).fetch_one(&mut *connection)).await?;
        // As much time for the others.
        sleep(began.elapsed()).await;
    }
    let done =
        "DROP TRIGGER remember_former_revision ON jobs; DROP FUNCTION remember_former_revision()";
    apply_in_transaction(connection, done.into_sql_str(), None, log).await?;
    Ok(())
}
