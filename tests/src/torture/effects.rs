//! What statements have done: a row for each time, in the transaction of its own attempt's success.
//!
//! For the judge these rows are entries of the ledger. A row that stands twice is a task that was begun
//! twice, one without an attempt that succeeded ran without an attempt, and a success without a row was not
//! run.

use anyhow::Result;
use sqlx::PgPool;
use tokio::time::timeout;
use uuid::Uuid;

use super::ledger::Entry;
use super::rows::QUERY_TIMEOUT;

/// What a worker's catalogue says of the task type.
pub(super) const CATALOGUE: &str =
    "[tasks.statement]\nsql = \"INSERT INTO torture_effects (key) VALUES ($2)\"\n";

/// Makes the table; its rows may stand as often as they are written.
pub(super) async fn prepare(pool: &PgPool) -> Result<()> {
    let table = sqlx::query("CREATE TABLE torture_effects (key text NOT NULL)");
    timeout(QUERY_TIMEOUT, table.execute(pool)).await??;
    Ok(())
}

/// How often the effect of an execution is there.
pub(super) async fn of(pool: &PgPool, execution: Uuid) -> Result<i64> {
    let count = sqlx::query_scalar(
        "SELECT count(*) FROM torture_effects f JOIN sexton.executions e ON e.idempotency_key = f.key
         WHERE e.id = $1",
    );
    Ok(timeout(QUERY_TIMEOUT, count.bind(execution).fetch_one(pool)).await??)
}

/// All of them, as entries of the ledger: a beginning and an end of the attempt that succeeded, or of a
/// number that no attempt has.
pub(super) async fn entries(pool: &PgPool) -> Result<Vec<Entry>> {
    let rows = sqlx::query_as::<_, (String, Uuid, i32)>(
        "SELECT f.key, coalesce(e.id, gen_random_uuid()), coalesce(a.number, 0)
         FROM torture_effects f
         LEFT JOIN sexton.executions e ON e.idempotency_key = f.key
         LEFT JOIN sexton.attempts a ON a.execution_id = e.id AND a.outcome = 'succeeded'",
    );
    let rows = timeout(QUERY_TIMEOUT, rows.fetch_all(pool)).await??;
    let both = |(key, execution, attempt): (String, Uuid, i32)| {
        let begin = Entry::Begin { key: key.clone(), attempt, execution };
        [begin, Entry::End { key, attempt, execution }]
    };
    Ok(rows.into_iter().flat_map(both).collect())
}
