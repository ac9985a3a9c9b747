//! Whether there is room for the schema: nobody else's tables have its names.

use sqlx::Row as _;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnection;

use super::{MIGRATIONS_TABLE, names, up_migrations};
use crate::StoreError;
use crate::client_timeout::with_client_timeout;

/// Names that are listed in a message.
const MAX_LISTED_NAMES: usize = 10;
/// What helps.
const REMEDY: &str = "give Sexton a database of its own (CREATE DATABASE sexton; name it in DATABASE_URL), or a \
                      schema of its own in this one: CREATE SCHEMA sexton; and let DATABASE_URL of all programs \
                      end with ?options=-csearch_path%3Dsexton";

/// Fails, before anything is changed, where a migration would meet tables that are not Sexton's, or would write
/// itself down among the migrations of another program.
///
/// # Errors
///
/// [`StoreError::Unsuitable`] with the tables and what to do.
pub(super) async fn check_names(
    connection: &mut PgConnection,
    migrator: &Migrator,
) -> Result<(), StoreError> {
    let asked = sqlx::query(
        "-- migrated_schema
        SELECT current_schema()::text AS schema, current_setting('search_path') AS path,
               to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1)) IS NOT NULL AS migrated",
    );
    let row = with_client_timeout(asked.bind(MIGRATIONS_TABLE).fetch_one(&mut *connection)).await?;
    let Some(schema) = row.try_get::<Option<String>, _>("schema")? else {
        let path: String = row.try_get("path")?;
        return Err(StoreError::Unsuitable(format!(
            "none of the schemas of its search_path ({path}) exists: create it first (CREATE SCHEMA …)"
        )));
    };
    let applied: Vec<(i64, Vec<u8>)> = if row.try_get("migrated")? {
        let all =
            sqlx::query_as("-- migrations_there\nSELECT version, checksum FROM _sqlx_migrations");
        with_client_timeout(all.fetch_all(&mut *connection)).await?
    } else {
        Vec::new()
    };
    let ours = |(version, checksum): &(i64, Vec<u8>)| {
        up_migrations(migrator)
            .any(|m| m.version == *version && m.checksum.as_ref() == checksum.as_slice())
    };
    if applied.iter().any(ours) {
        return Ok(());
    }
    if !applied.is_empty() {
        return Err(StoreError::Unsuitable(format!(
            "the table {MIGRATIONS_TABLE} of the schema {schema} holds the migrations of another program; {REMEDY}"
        )));
    }
    let names: Vec<String> =
        names::created_names(migrator).into_iter().map(|(_, name)| name).collect();
    let taken = sqlx::query_scalar(
        "-- names_taken
        SELECT name::text FROM (
            SELECT relname FROM pg_class WHERE relnamespace = $2::regnamespace
            UNION SELECT typname FROM pg_type WHERE typnamespace = $2::regnamespace
            UNION SELECT proname FROM pg_proc WHERE pronamespace = $2::regnamespace) t (name)
        WHERE name::text = ANY ($1) ORDER BY name",
    );
    let quoted = format!("\"{}\"", schema.replace('"', "\"\""));
    let taken: Vec<String> =
        with_client_timeout(taken.bind(&names).bind(quoted).fetch_all(&mut *connection)).await?;
    if taken.is_empty() {
        return Ok(());
    }
    let more = taken.len().saturating_sub(MAX_LISTED_NAMES);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let listed = taken.iter().take(MAX_LISTED_NAMES).cloned().collect::<Vec<_>>().join(", ");
    Err(StoreError::Unsuitable(format!(
        "its schema {schema} has what is not Sexton's and bears its names: {listed}{more}; {REMEDY}"
    )))
}
