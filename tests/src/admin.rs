//! Statements that create and drop the tests' databases.
//!
//! A process keeps a few connections for them, on a runtime of their own: a test's runtime ends with the test, and a
//! connection for each statement would cost more than most statements.

use std::str::FromStr as _;
use std::sync::{LazyLock, OnceLock, mpsc};
use std::time::Duration;

use anyhow::{Context as _, Result};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::runtime::{Builder, Runtime};

/// So many tests create or drop at the same time; others wait.
const CONNECTIONS: u32 = 4;
/// A server that its test has killed or frozen does not answer.
const DROP_DEADLINE: Duration = Duration::from_secs(20);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    let building = builder.worker_threads(1).thread_name("test databases").enable_all().build();
    building.expect("a runtime can be built")
});
/// Connections to the server that the tests share.
static SHARED: OnceLock<PgPool> = OnceLock::new();

/// Runs `statement` on the server of `server`.
pub(crate) async fn run(server: &str, statement: String) -> Result<()> {
    RUNTIME.spawn(execute(server.to_owned(), statement)).await?
}

/// Drops a database and all connections to it, if its server answers within [`DROP_DEADLINE`]. Blocks the thread.
pub(crate) fn drop_database(server: &str, name: &str) {
    let (server, statement) =
        (server.to_owned(), format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    let (done, ended) = mpsc::channel();
    RUNTIME.spawn(async move {
        let _ = tokio::time::timeout(DROP_DEADLINE, execute(server, statement)).await;
        let _ = done.send(());
    });
    let _ = ended.recv();
}

/// A connection of one's own.
pub(crate) async fn connect(server: &str) -> Result<PgConnection> {
    let options = PgConnectOptions::from_str(server)?;
    PgConnection::connect_with(&options).await.with_context(|| "failed to reach the tests' server")
}

async fn execute(server: String, statement: String) -> Result<()> {
    // The callers make the statements, of letters, digits and underscores.
    let statement = sqlx::raw_sql(AssertSqlSafe(statement));
    if !is_shared(&server) {
        statement.execute(&mut connect(&server).await?).await?;
        return Ok(());
    }
    let options = PgConnectOptions::from_str(&server)?;
    let pool = SHARED.get_or_init(|| {
        PgPoolOptions::new().max_connections(CONNECTIONS).connect_lazy_with(options)
    });
    statement.execute(pool).await?;
    Ok(())
}

/// Whether it is the server that all tests of the process share. Tests kill and freeze others.
pub(crate) fn is_shared(server: &str) -> bool {
    sexton_servers::started().is_some_and(|shared| shared.database_url == server)
}
