//! Indexes whose build was interrupted.
//!
//! `CREATE INDEX CONCURRENTLY` that ends in the middle, with its program or its server, leaves an index that every
//! write maintains and no query uses; `IF NOT EXISTS` would take it for complete.

use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, PgExecutor};

use super::apply::migration_error;
use super::{MIGRATIONS, ProgressLog, SCHEMA, names};
use crate::{Store, StoreError};

/// An index of one of our tables that no query uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidIndex {
    /// Its name.
    pub index: String,
    /// Its table.
    pub table: String,
}

/// Returns the invalid indexes that are not being built now.
pub async fn invalid_indexes(store: &Store) -> Result<Vec<InvalidIndex>, StoreError> {
    Ok(find(store.with_timeout(), &MIGRATIONS, false).await?)
}

async fn find(
    executor: impl PgExecutor<'_>,
    migrator: &Migrator,
    also_being_built: bool,
) -> Result<Vec<InvalidIndex>, sqlx::Error> {
    let tables = names::table_names(migrator);
    // Not checked at compile time, like all migration code: it only reads the server's catalogue.
    let rows: Vec<(String, String)> = sqlx::query_as(
        "-- invalid_indexes
        SELECT c.relname::text, t.relname::text
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
        WHERE NOT i.indisvalid AND t.relkind = 'r' AND t.relname::text = ANY ($1)
          AND t.relnamespace = to_regnamespace($3)
          AND ($2 OR NOT EXISTS (
              SELECT FROM pg_stat_progress_create_index p
              WHERE p.relid = i.indrelid AND (p.index_relid = i.indexrelid OR p.command LIKE 'REINDEX%')))
        ORDER BY c.relname LIMIT 100",
    )
    .bind(&tables)
    .bind(also_being_built)
    .bind(SCHEMA)
    .fetch_all(executor)
    .await?;
    Ok(rows.into_iter().map(|(index, table)| InvalidIndex { index, table }).collect())
}

/// Fails if an index that `text` names is invalid: `IF NOT EXISTS` takes it for complete, and it was not repaired
/// because another index of that table is being built.
pub(super) async fn must_be_valid(
    connection: &mut PgConnection,
    text: &str,
) -> Result<(), StoreError> {
    let named =
        |word: &str| text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|w| w == word);
    match find(connection, &MIGRATIONS, true).await?.into_iter().find(|one| named(&one.index)) {
        None => Ok(()),
        Some(InvalidIndex { index, table }) => Err(StoreError::Schema(format!(
            "the build of the index {index} was interrupted, and somebody builds another index of {table}; run \
             `sexton migrate` again when that is over"
        ))),
    }
}

/// Rebuilds them, concurrently with reads and writes.
pub(super) async fn repair(
    connection: &mut PgConnection,
    migrator: &Migrator,
    log: ProgressLog<'_>,
) -> Result<(), StoreError> {
    for InvalidIndex { index, table } in find(&mut *connection, migrator, false).await? {
        // Left beside the index by an interrupted rebuild.
        let leftover = ["_ccnew", "_ccold"].iter().any(|mark| {
            let suffix = index.rsplit_once(mark).map(|(_, suffix)| suffix);
            suffix.is_some_and(|suffix| suffix.bytes().all(|byte| byte.is_ascii_digit()))
        });
        let quoted = format!("{SCHEMA}.\"{}\"", index.replace('"', "\"\""));
        let statement = if leftover {
            format!("-- drop_leftover_index\nDROP INDEX CONCURRENTLY IF EXISTS {quoted}")
        } else {
            log(&format!(
                "the build of the index {index} of {table} was interrupted; builds it again"
            ));
            format!("-- rebuild_index\nREINDEX INDEX CONCURRENTLY {quoted}")
        };
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut *connection)
            .await
            .map_err(migration_error)?;
    }
    Ok(())
}
