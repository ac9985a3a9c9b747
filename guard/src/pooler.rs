//! Finds a pooler between this program and PostgreSQL that gives a session to several clients in turn.
//!
//! A session's lock that is taken through such a pooler belongs to a connection of the pooler: another client releases it,
//! or nobody does.
//!
//! A connection that brings a start-up option to the server is a direct one, or one of a pooler that passes clients
//! through whole. Where the option is missing a pooler has dropped it, and the connection is tried: it is marked, and while
//! it is idle a second connection must not come to the same session.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use uuid::Uuid;

/// How often a second connection is tried. A pooler usually hands out the session that it used last.
const TRIALS: usize = 3;

/// Which way a connection takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// The server read the start-up options.
    Direct,
    /// Something between the program and the server drops or refuses them.
    Pooled,
}

/// The options of a connection with a start-up option that means nothing to the server.
pub(crate) fn marked(options: PgConnectOptions) -> PgConnectOptions {
    options.options([("sexton_guard.start_up", "on")])
}

/// Whether the start-up option of [`marked`] has arrived.
///
/// # Errors
///
/// Those of the database.
pub(crate) async fn is_marked(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let statement =
        "SELECT coalesce(current_setting('sexton_guard.start_up', true), '') = 'on' AS is_marked";
    sqlx::raw_sql(statement).fetch_one(connection).await?.try_get("is_marked")
}

/// Whether a pooler refuses start-up options.
pub(crate) fn refuses_start_up_options(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    // PgBouncer: "unsupported startup parameter: options", with 08P01 or without a code of its own.
    error.message().contains("startup parameter")
}

/// Whether other clients use the session of `connection`, which goes through a pooler.
///
/// # Errors
///
/// Those of the database.
pub(crate) async fn is_shared(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
) -> Result<bool, sqlx::Error> {
    let mark = Uuid::new_v4().simple().to_string();
    for _ in 0..TRIALS {
        let pid = write_mark(connection, &mark).await?;
        let mut other = PgConnection::connect_with(options).await?;
        // A transaction holds the session that it gets, so the first connection must get another one if that was its own.
        let found = "BEGIN; SELECT pg_backend_pid() AS pid,
                            coalesce(current_setting('sexton_guard.mark', true), '') AS mark";
        let found = sqlx::raw_sql(found).fetch_one(&mut other).await?;
        let is_same = found.try_get::<i32, _>("pid")? == pid
            || found.try_get::<String, _>("mark")? == mark
            || write_mark(connection, &mark).await? != pid;
        if is_same {
            write_mark(connection, "").await?;
        }
        // A session that others use is left as it was.
        let forget = "SELECT set_config('sexton_guard.mark', '', false); COMMIT";
        sqlx::raw_sql(forget).execute(&mut other).await?;
        other.close().await?;
        if is_same {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Marks the session that a statement of this connection gets now, and returns its process id.
async fn write_mark(connection: &mut PgConnection, mark: &str) -> Result<i32, sqlx::Error> {
    // The mark is hexadecimal digits.
    let statement =
        format!("SELECT pg_backend_pid() AS pid, set_config('sexton_guard.mark', '{mark}', false)");
    sqlx::raw_sql(AssertSqlSafe(statement)).fetch_one(connection).await?.try_get("pid")
}
