//! A database of its own for every test.
//!
//! Migrating takes longer than copying, so the schema is migrated once into a template per set of
//! migrations, and each test copies that. A test that is killed leaves its database behind; databases
//! older than a day are swept by the next run.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use sexton_store::{Store, StoreOptions};
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::OnceCell;

use crate::admin;

/// What the names of all such databases begin with.
const PREFIX: &str = "sexton_test_";
/// Older databases were left behind by tests that were killed.
const STALE: chrono::Duration = chrono::Duration::days(1);
/// Any number, the same for all runs: one of them builds the template, the others wait.
const TEMPLATE_LOCK: i64 = 0x7365_7874_6f6e;

/// How a test's database is copied.
static TEMPLATE: OnceCell<Template> = OnceCell::const_new();

#[derive(Debug)]
struct Template {
    name: String,
    /// A further option of `CREATE DATABASE`. Copying files writes no write-ahead log, and takes less time.
    strategy: &'static str,
}

/// A migrated database, dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
    url: String,
    store: Store,
}

impl TestDatabase {
    /// Creates one on the server that the tests share.
    pub async fn create() -> Result<Self> {
        let server = sexton_servers::shared().await?.database_url.clone();
        Self::create_on(&server).await
    }

    /// Creates one on the server of `server`, a superuser's URL whose own database is not touched.
    pub async fn create_on(server: &str) -> Result<Self> {
        let name = fresh_name();
        if !admin::is_shared(server) {
            admin::run(server, format!("CREATE DATABASE {name}")).await?;
            let database = Self::existing(server, name)?;
            database.store.migrate().await?;
            return Ok(database);
        }
        let Template { name: template, strategy } =
            TEMPLATE.get_or_try_init(|| template(server)).await?;
        admin::run(server, format!("CREATE DATABASE {name} TEMPLATE {template} {strategy}"))
            .await?;
        Self::existing(server, name)
    }

    /// Creates an empty one called `name` (letters, digits, underscores), for a program that migrates
    /// by itself. No run sweeps it.
    pub async fn create_empty_on(server: &str, name: &str) -> Result<Self> {
        admin::run(server, format!("CREATE DATABASE {name}")).await?;
        Self::existing(server, name.to_owned())
    }

    fn existing(server: &str, name: String) -> Result<Self> {
        let url = with_database(server, &name)?;
        let mut options = StoreOptions::new(&url, "sexton test");
        options.pool_size = 3;
        let store = Store::open(&options)?;
        Ok(Self { server: server.to_owned(), name, url, store })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Three connections to it.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The same connections, for a test's own questions.
    pub fn pool(&self) -> &PgPool {
        self.store.pool()
    }

    /// A store with connections of its own, as another process has it.
    pub fn other_store(&self) -> Result<Store> {
        Ok(Store::open(&StoreOptions::new(&self.url, "sexton test, another"))?)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        admin::drop_database(&self.server, &self.name);
    }
}

/// The migrations' files with sqlx's own migrator, which can go down.
///
/// # Errors
///
/// They cannot be read.
pub async fn migrator() -> Result<Migrator> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut migrator = Migrator::new(folder).await?;
    migrator.dangerous_set_table_name("sexton._sqlx_migrations");
    Ok(migrator)
}

/// Begins with the hour of its birth, for the sweep.
fn fresh_name() -> String {
    let now = sexton_service::clock::now().timestamp();
    format!("{PREFIX}{now}_{}", &uuid::Uuid::new_v4().simple().to_string()[..12])
}

fn birth(name: &str) -> Option<i64> {
    name.strip_prefix(PREFIX)?.split('_').next()?.parse().ok()
}

/// Builds the template of these migrations if it is not there, and sweeps what is stale.
async fn template(server: &str) -> Result<Template> {
    let name = format!("sexton_template_{:016x}", migrations_hash()?);
    let mut connection = admin::connect(server).await?;
    sqlx::query("SELECT pg_advisory_lock($1)").bind(TEMPLATE_LOCK).execute(&mut connection).await?;
    sweep(&mut connection).await?;
    let there: bool = sqlx::query_scalar("SELECT count(*) > 0 FROM pg_database WHERE datname = $1")
        .bind(&name)
        .fetch_one(&mut connection)
        .await?;
    if !there {
        // Under another name until it is whole: a run that is killed here leaves no half template.
        let draft = fresh_name();
        run(&mut connection, &format!("CREATE DATABASE {draft}")).await?;
        let store = Store::open(&StoreOptions::new(with_database(server, &draft)?, "sexton test"))?;
        store.migrate().await?;
        store.close().await;
        run(&mut connection, &format!("ALTER DATABASE {draft} RENAME TO {name}")).await?;
    }
    let chooses = "SELECT current_setting('server_version_num')::int >= 150000";
    let chooses: bool = sqlx::query_scalar(chooses).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(Template { name, strategy: if chooses { "STRATEGY file_copy" } else { "" } })
}

async fn sweep(connection: &mut PgConnection) -> Result<()> {
    let names: Vec<String> =
        sqlx::query_scalar("SELECT datname::text FROM pg_database WHERE datname LIKE $1")
            .bind(format!("{}%", PREFIX.replace('_', "\\_")))
            .fetch_all(&mut *connection)
            .await?;
    let stale = (sexton_service::clock::now() - STALE).timestamp();
    for name in names.iter().filter(|name| birth(name).is_some_and(|birth| birth < stale)) {
        run(connection, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
    }
    Ok(())
}

fn migrations_hash() -> Result<u64> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.file_name().hash(&mut hasher);
        std::fs::read(file.path())?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

async fn run(connection: &mut PgConnection, statement: &str) -> Result<()> {
    // Names are made here, of letters, digits and underscores.
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(connection).await?;
    Ok(())
}

fn with_database(server: &str, name: &str) -> Result<String> {
    let (rest, query) = server.split_once('?').map_or((server, None), |(a, b)| (a, Some(b)));
    let authority = rest.find("://").context("the server's URL has no scheme")? + 3;
    let base = rest[authority..].find('/').map_or(rest, |slash| &rest[..authority + slash]);
    Ok(query.map_or(format!("{base}/{name}"), |query| format!("{base}/{name}?{query}")))
}
