//! Applies one migration's file, in the way that its first line selects.

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::migrate::Migration;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, SqlSafeStr as _, SqlStr};
use tokio::time::{Instant, sleep};

use super::{ProgressLog, index};
use crate::StoreError;

/// The first line of a file whose statement is repeated until it changes no row.
const BATCHED_MARKER: &str = "-- batches";
/// How long a transaction waits for a table's lock. Everybody who comes later waits behind it.
const SET_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '1s'";
/// The timeout in most files, for those who run them by other means. This program's is shorter, and retried.
const FILES_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '3s'";
/// How often to try for the lock.
const MAX_LOCK_TRIES: u32 = 5;
/// Pause between two tries, for those who waited behind.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The longest pause between two batches; otherwise it is as long as the batch took.
const MAX_BATCH_PAUSE: Duration = Duration::from_secs(1);
/// How often to log the batches' progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

/// Applies the file and records that.
pub(super) async fn apply_file(
    connection: &mut PgConnection,
    migration: &Migration,
    log: ProgressLog<'_>,
) -> Result<(), StoreError> {
    let text = migration.sql.as_str();
    if migration.no_tx {
        // Without a transaction no lock blocks others, so the statement may wait as long as it must.
        let began = Instant::now();
        sqlx::raw_sql(migration.sql.clone())
            .execute(&mut *connection)
            .await
            .map_err(migration_error)?;
        index::must_be_valid(connection, text).await?;
        Ok(record_migration(connection, migration, began).await?)
    } else if text.starts_with(BATCHED_MARKER) {
        let began = Instant::now();
        let name = format!("migration {} ({})", migration.version, migration.description);
        apply_in_batches(connection, migration.sql.clone(), &name, log).await?;
        Ok(record_migration(connection, migration, began).await?)
    } else {
        let text = text.replace(FILES_LOCK_TIMEOUT, SET_LOCK_TIMEOUT);
        apply_in_transaction(connection, AssertSqlSafe(text).into_sql_str(), Some(migration), log)
            .await?;
        Ok(())
    }
}

/// Repeats a statement, each time in a transaction of its own, until it changes no row, and pauses after each for as
/// long as it took. An interruption keeps the finished batches.
async fn apply_in_batches(
    connection: &mut PgConnection,
    statement: SqlStr,
    name: &str,
    log: ProgressLog<'_>,
) -> Result<(), StoreError> {
    let (mut rows, mut last_report) = (0, Instant::now());
    loop {
        let began = Instant::now();
        let changed = apply_in_transaction(connection, statement.clone(), None, log).await?;
        if changed == 0 {
            return Ok(());
        }
        rows += changed;
        if last_report.elapsed() >= PROGRESS_INTERVAL {
            last_report = Instant::now();
            log(&format!("{name}: {rows} rows are done"));
        }
        sleep(began.elapsed().min(MAX_BATCH_PAUSE)).await;
    }
}

/// Runs the file in a transaction, with retries if a table is in use, and records `migration` in the same. Returns
/// how many rows it changed.
async fn apply_in_transaction(
    connection: &mut PgConnection,
    text: SqlStr,
    migration: Option<&Migration>,
    log: ProgressLog<'_>,
) -> Result<u64, StoreError> {
    let mut tries = 0;
    loop {
        match try_apply(connection, text.clone(), migration).await.map_err(migration_error) {
            Err(StoreError::InUse(why)) if tries + 1 < MAX_LOCK_TRIES => {
                tries += 1;
                log(&format!("a table is in use ({why}); tries again"));
                sleep(LOCK_RETRY_INTERVAL).await;
            }
            other => return other,
        }
    }
}

async fn try_apply(
    connection: &mut PgConnection,
    text: SqlStr,
    migration: Option<&Migration>,
) -> Result<u64, sqlx::Error> {
    let began = Instant::now();
    let mut tx = connection.begin().await?;
    sqlx::raw_sql(SET_LOCK_TIMEOUT).execute(&mut *tx).await?;
    let changed = sqlx::raw_sql(text).execute(&mut *tx).await?.rows_affected();
    if let Some(migration) = migration {
        record_migration(&mut tx, migration, began).await?;
    }
    tx.commit().await?;
    Ok(changed)
}

async fn record_migration(
    connection: &mut PgConnection,
    migration: &Migration,
    began: Instant,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "-- record_migration
        INSERT INTO sexton._sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES ($1, $2, true, $3, $4)",
    )
    .bind(migration.version)
    .bind(&*migration.description)
    .bind(&*migration.checksum)
    .bind(i64::try_from(began.elapsed().as_nanos()).unwrap_or(i64::MAX))
    .execute(connection)
    .await?;
    Ok(())
}

/// A lock timeout or deadlock means that others use the table.
pub(super) fn migration_error(error: sqlx::Error) -> StoreError {
    match error.as_database_error().and_then(DatabaseError::code).as_deref() {
        Some("55P03" | "40P01") => StoreError::InUse(error),
        // No time limit applies: a person ended it.
        Some("57014") => StoreError::Statement(error),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::MIGRATIONS;

    #[test]
    fn no_file_waits_for_a_lock_for_longer_than_the_one_that_applies_it() {
        for migration in MIGRATIONS.iter() {
            let text = migration.sql.as_str().replace(FILES_LOCK_TIMEOUT, SET_LOCK_TIMEOUT);
            let others = text.replace(SET_LOCK_TIMEOUT, "");
            assert!(!others.contains("lock_timeout"), "{}: {others}", migration.version);
        }
    }
}
