//! Checks whether the schema `sexton` is Sexton's, and creates it where it is missing.

use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::{MIGRATIONS_TABLE, SCHEMA, names, up_migrations};
use crate::StoreError;
use crate::connection::client_timeout::with_client_timeout;

/// Maximum number of names listed in a message.
const MAX_LISTED_NAMES: usize = 10;
/// The remedy where the schema belongs to another program.
const REMEDY: &str = "rename their schema (ALTER SCHEMA sexton RENAME TO …), or give Sexton a database of its own \
                      (CREATE DATABASE …; name it in DATABASE_URL)";

/// Creates the schema if it is missing. Fails, before any change, where it holds another program's objects under
/// Sexton's names, or the record of another program's migrations. Other schemas, such as `public`, do not matter.
///
/// # Errors
///
/// [`StoreError::Unsuitable`] with the objects, or the missing privilege, and the remedy.
pub(super) async fn prepare_schema(
    connection: &mut PgConnection,
    migrator: &Migrator,
) -> Result<(), StoreError> {
    let statement = sqlx::query(
        "-- migrated_schema
        SELECT to_regnamespace($1) IS NOT NULL AS present, to_regclass($2) IS NOT NULL AS migrated,
               has_database_privilege(current_database(), 'CREATE') AS may_create,
               current_user::text AS role, quote_ident(current_user) AS quoted_role,
               quote_ident(current_database()) AS database",
    );
    let statement = statement.bind(SCHEMA).bind(MIGRATIONS_TABLE);
    let row = with_client_timeout(statement.fetch_one(&mut *connection)).await?;
    if !row.try_get::<bool, _>("present")? {
        if !row.try_get::<bool, _>("may_create")? {
            let (role, quoted): (String, String) =
                (row.try_get("role")?, row.try_get("quoted_role")?);
            let database: String = row.try_get("database")?;
            return Err(StoreError::Unsuitable(format!(
                "it has no schema {SCHEMA}, and the role {role} may not create one; as the database's owner, run \
                 CREATE SCHEMA {SCHEMA} AUTHORIZATION {quoted}, or GRANT CREATE ON DATABASE {database} TO {quoted}"
            )));
        }
        // Without IF NOT EXISTS, which needs the privilege even if the schema exists.
        let create = sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {SCHEMA}")));
        with_client_timeout(create.execute(&mut *connection)).await?;
        return Ok(());
    }
    let applied: Vec<(i64, Vec<u8>)> = if row.try_get("migrated")? {
        let all = sqlx::query_as(
            "-- migrations_there\nSELECT version, checksum FROM sexton._sqlx_migrations",
        );
        with_client_timeout(all.fetch_all(&mut *connection)).await?
    } else {
        Vec::new()
    };
    let is_ours = |(version, checksum): &(i64, Vec<u8>)| {
        up_migrations(migrator)
            .any(|m| m.version == *version && m.checksum.as_ref() == checksum.as_slice())
    };
    if applied.iter().any(is_ours) {
        return Ok(());
    }
    if !applied.is_empty() {
        return Err(StoreError::Unsuitable(format!(
            "the table {MIGRATIONS_TABLE} holds the migrations of another program; {REMEDY}"
        )));
    }
    refuse_taken_names(connection, migrator).await
}

/// Fails where the schema has objects with the names of those that the files create.
async fn refuse_taken_names(
    connection: &mut PgConnection,
    migrator: &Migrator,
) -> Result<(), StoreError> {
    let names: Vec<String> =
        names::created_names(migrator).into_iter().map(|(_, name)| name).collect();
    let taken = sqlx::query_scalar(
        "-- names_taken
        SELECT name::text FROM (
            SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace($2)
            UNION SELECT typname FROM pg_type WHERE typnamespace = to_regnamespace($2)
            UNION SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace($2)) t (name)
        WHERE name::text = ANY ($1) ORDER BY name",
    );
    let taken: Vec<String> =
        with_client_timeout(taken.bind(&names).bind(SCHEMA).fetch_all(&mut *connection)).await?;
    if taken.is_empty() {
        return Ok(());
    }
    let more = taken.len().saturating_sub(MAX_LISTED_NAMES);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let listed = taken.iter().take(MAX_LISTED_NAMES).cloned().collect::<Vec<_>>().join(", ");
    Err(StoreError::Unsuitable(format!(
        "its schema {SCHEMA} has objects that are not Sexton's and bear the names of Sexton's: {listed}{more}; {REMEDY}"
    )))
}
