//! The effects of statements: a row for each time, in the transaction of its attempt's success.
//!
//! The oracle reads these rows as entries of the ledger. Two equal rows are a task that was begun
//! twice, a row without a successful attempt is a task that ran without one, and a success without
//! a row is a task that did not run.

use anyhow::Result;
use sqlx::PgPool;
use tokio::time::timeout;
use uuid::Uuid;

use super::alarms;
use super::ledger::Entry;
use super::rows::QUERY_TIMEOUT;

/// The task type's entry in a worker's catalogue.
pub(super) const CATALOGUE: &str =
    "[tasks.statement]\nsql = \"INSERT INTO torture_effects (key) VALUES ($2)\"\n";

/// Creates the table, which permits equal rows, and those of [`alarms`].
pub(super) async fn prepare(pool: &PgPool) -> Result<()> {
    let table = sqlx::query("CREATE TABLE torture_effects (key text NOT NULL)");
    timeout(QUERY_TIMEOUT, table.execute(pool)).await??;
    alarms::prepare(pool).await
}

/// How often the effect of an execution happened.
pub(super) async fn of(pool: &PgPool, execution: Uuid) -> Result<i64> {
    let count = sqlx::query_scalar(
        "SELECT count(*) FROM torture_effects f JOIN sexton.executions e ON e.idempotency_key = f.key
         WHERE e.id = $1",
    );
    Ok(timeout(QUERY_TIMEOUT, count.bind(execution).fetch_one(pool)).await??)
}

/// All rows as entries of the ledger: a beginning and an end of the attempt that succeeded, or of a
/// number that no attempt has.
pub(super) async fn entries(pool: &PgPool) -> Result<Vec<Entry>> {
    let rows = sqlx::query_as::<_, (String, Uuid, i32)>(
        "SELECT f.key, coalesce(e.id, gen_random_uuid()), coalesce(a.number, 0)
         FROM torture_effects f
         LEFT JOIN sexton.executions e ON e.idempotency_key = f.key
         LEFT JOIN sexton.all_attempts a ON a.execution_id = e.id AND a.outcome = 'succeeded'",
    );
    let rows = timeout(QUERY_TIMEOUT, rows.fetch_all(pool)).await??;
    let both = |(key, execution, attempt): (String, Uuid, i32)| {
        let begin = Entry::Begin { key: key.clone(), attempt, execution };
        [begin, Entry::End { key, attempt, execution }]
    };
    Ok(rows.into_iter().flat_map(both).collect())
}
