//! The schema: the applied migrations, and how the missing ones are applied.
//!
//! They run on their own connection, without a time limit for statements, because the build of an index takes as long
//! as the table is large. Whatever blocks other programs is limited nevertheless: a migration waits a second for a
//! table's lock, then lets everybody pass and tries again; data are changed in batches, each a transaction of its
//! own; and an index whose build was interrupted is built again.
//!
//! **Crashes.** A file and the row that records it are one transaction, or the file can be applied again. When the
//! program dies or is stopped, the server ends the running statement.

mod apply;
pub mod grants;
mod index;
mod lock;
mod monitor;
mod names;
mod preflight;
pub mod roles;

use std::collections::BTreeMap;

use sqlx::migrate::{Migrate as _, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};

use crate::connection::client_timeout::with_client_timeout;
use crate::connection::session::Session;
use crate::{Store, StoreError};

pub use index::{InvalidIndex, invalid_indexes};
pub(crate) use lock::migration_lock_key;

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// The schema that holds everything that migrations create, and the record of them. Statements name it; none depends on
/// the session's `search_path`.
const SCHEMA: &str = "sexton";
/// The record of applied migrations, in the format of sqlx.
const MIGRATIONS_TABLE: &str = "sexton._sqlx_migrations";
/// The first server version that checks its client's connection while a statement runs.
const MIN_CLIENT_CHECK_VERSION: u32 = 140_000;

/// A callback for progress lines about slow work and its reason.
pub type ProgressLog<'a> = &'a (dyn Fn(&str) + Sync);

impl Store {
    /// Brings the schema up to this program's version, as [`MigrationSession`] does, without progress lines. Returns
    /// how many migrations ran.
    ///
    /// # Errors
    ///
    /// Those of [`MigrationSession::run`].
    pub async fn migrate(&self) -> Result<usize, StoreError> {
        MigrationSession::begin(self).await?.run(&|_| {}).await
    }

    /// Fails unless the schema is exactly this program's, or newer and still compatible.
    ///
    /// # Errors
    ///
    /// [`StoreError::Schema`] with the remedy.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        let there: Option<bool> =
            sqlx::query_scalar("SELECT to_regclass('sexton._sqlx_migrations') IS NOT NULL")
                .fetch_one(self.with_timeout())
                .await?;
        let applied: Vec<(i64, Vec<u8>)> = if there == Some(true) {
            // Not checked at compile time: the table belongs to the migrator.
            sqlx::query_as("SELECT version, checksum FROM sexton._sqlx_migrations WHERE success")
                .fetch_all(self.with_timeout())
                .await?
        } else {
            Vec::new()
        };
        if !applied.is_empty()
            && !applied.iter().any(|(version, sum)| is_own_migration(*version, sum))
        {
            let text = "the migrations in it are another program's";
            return Err(StoreError::Schema(text.to_owned()));
        }
        let wanted = up_migrations(&MIGRATIONS).count();
        let applied = up_migrations(&MIGRATIONS)
            .filter(|ours| applied.iter().any(|(version, _)| *version == ours.version))
            .count();
        if applied < wanted {
            return Err(StoreError::Schema(format!(
                "{applied} of {wanted} migrations are applied"
            )));
        }
        Ok(())
    }
}

/// A session in which migrations are applied. Safe to begin in several processes at once: one of them works,
/// the others wait for it.
#[derive(Debug)]
pub struct MigrationSession {
    connection: PgConnection,
    session: Session,
}

impl MigrationSession {
    /// Connects, without a time limit for statements.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: the database refuses the connection.
    pub async fn begin(store: &Store) -> Result<Self, StoreError> {
        let mut connection = with_client_timeout(store.direct_options().connect()).await?;
        // Not as start-up options, which a pooler drops: an index would be given up after the time limit of the role.
        let unlimited = sqlx::raw_sql("SET statement_timeout = 0; SET lock_timeout = 0");
        with_client_timeout(unlimited.execute(&mut connection)).await?;
        if connection.server_version_num().is_some_and(|number| number >= MIN_CLIENT_CHECK_VERSION)
        {
            // Makes the server end a killed program's statement within a second.
            let statement = sqlx::raw_sql("SET client_connection_check_interval = 1000");
            with_client_timeout(statement.execute(&mut connection)).await?;
        }
        let who = sqlx::raw_sql(
            "-- migration_session
            SELECT pid::text, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()",
        );
        let row = with_client_timeout(who.fetch_one(&mut connection)).await?;
        let pid: String = row.try_get(0)?;
        let pid = pid.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        let session = Session { store: store.clone(), pid, since: row.try_get(1)? };
        // Only now: the owner may not see when a member's session began.
        become_owner(&mut connection).await?;
        Ok(Self { connection, session })
    }

    /// Returns its session, with which a caller that stops waiting for [`Self::run`] can end it. Its statement is
    /// rolled back, except for the build of an index, which the next run repairs.
    pub fn session(&self) -> Session {
        self.session.clone()
    }

    /// Applies the missing migrations, and returns how many. Waits without a limit for other migrators, so the caller
    /// limits the whole.
    ///
    /// # Errors
    ///
    /// [`StoreError::Schema`] when the database holds migrations this program does not know;
    /// [`StoreError::Unsuitable`] when its schema `sexton` is another program's or cannot be created;
    /// [`StoreError::InUse`] when others hold a table for too long. Applied migrations stay, and the next run
    /// continues from there.
    pub async fn run(self, log: ProgressLog<'_>) -> Result<usize, StoreError> {
        self.run_migrator(&MIGRATIONS, log).await
    }

    /// Like [`Self::run`] with other migrations, for tests.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub async fn run_migrator(
        self,
        migrator: &Migrator,
        log: ProgressLog<'_>,
    ) -> Result<usize, StoreError> {
        let Self { mut connection, session } = self;
        let done = tokio::select! {
            done = run_migrations(&mut connection, migrator, log) => done,
            lost = monitor::monitor_session(&session, log) => Err(lost),
        };
        // This also releases the migrator's lock.
        let _ = with_client_timeout(connection.close()).await;
        done
    }
}

/// Becomes the owner of the schema, where that is a role of which this one is a member: what is created has one owner.
async fn become_owner(connection: &mut PgConnection) -> Result<(), StoreError> {
    let owner = sqlx::query_scalar(
        "-- schema_owner_to_become
        SELECT format('SET ROLE %I', pg_get_userbyid(nspowner)) FROM pg_namespace
        WHERE nspname = $1 AND pg_get_userbyid(nspowner) <> current_user AND pg_has_role(nspowner, 'MEMBER')",
    );
    let owner = owner.bind(SCHEMA).fetch_optional(&mut *connection);
    let set: Option<String> = with_client_timeout(owner).await?;
    if let Some(set) = set {
        // Quoted by the server.
        let set = sqlx::raw_sql(AssertSqlSafe(set));
        with_client_timeout(set.execute(&mut *connection)).await?;
    }
    Ok(())
}

async fn run_migrations(
    connection: &mut PgConnection,
    migrator: &Migrator,
    log: ProgressLog<'_>,
) -> Result<usize, StoreError> {
    lock::acquire(connection, log).await?;
    preflight::prepare_schema(connection, migrator).await?;
    connection.ensure_migrations_table(MIGRATIONS_TABLE).await?;
    let applied = connection.list_applied_migrations(MIGRATIONS_TABLE).await?;
    let applied: BTreeMap<i64, _> = applied.into_iter().map(|m| (m.version, m.checksum)).collect();
    validate(&applied, migrator)?;
    index::repair(connection, migrator, log).await?;
    let mut done = 0;
    for migration in up_migrations(migrator).filter(|m| !applied.contains_key(&m.version)) {
        apply::apply_file(connection, migration, log).await?;
        done += 1;
    }
    Ok(done)
}

/// Refuses unknown migrations, and those applied from another text.
fn validate(
    applied: &BTreeMap<i64, std::borrow::Cow<'static, [u8]>>,
    migrator: &Migrator,
) -> Result<(), StoreError> {
    for (version, checksum) in applied {
        let Some(ours) = up_migrations(migrator).find(|ours| ours.version == *version) else {
            return Err(StoreError::Schema(format!(
                "migration {version} was applied and is not known to this program"
            )));
        };
        if ours.checksum != *checksum {
            return Err(StoreError::Schema(format!(
                "migration {version} was applied from another text than this program's"
            )));
        }
    }
    Ok(())
}

fn up_migrations(migrator: &Migrator) -> impl Iterator<Item = &sqlx::migrate::Migration> {
    migrator.iter().filter(|migration| migration.migration_type.is_up_migration())
}

fn is_own_migration(version: i64, checksum: &[u8]) -> bool {
    up_migrations(&MIGRATIONS).any(|ours| ours.version == version && ours.checksum == checksum)
}
