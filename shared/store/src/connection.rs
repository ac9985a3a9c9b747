//! Connections: the pool, connections outside it, and what each of them is set to and waits for.

pub(crate) mod client_timeout;
pub mod dedicated;
pub mod exclusive_lock;
pub(crate) mod instant;
pub mod scratch;
pub(crate) mod session;
pub(crate) mod session_settings;
pub mod timeout;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sexton_model::job_scope::JobScope;
use sqlx::ConnectOptions as _;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};

use crate::StoreError;
use crate::connection::client_timeout::with_client_timeout;
use crate::connection::session_settings::{Route, SessionSettings, check_same_database};

/// How long the ping of a connection that returns to the pool may take.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was idle for less than this has just answered, and is not pinged when it is taken.
pub(crate) const PING_AFTER_IDLE: Duration = Duration::from_secs(1);

/// Options of the connections.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// The same database without a pooler in between, for notifications, locks, the planner's claims, the workers'
    /// opens and settlements, and migrations; `None`: by `url`.
    pub direct_url: Option<String>,
    /// Shown in `pg_stat_activity`.
    pub application: String,
    /// Maximum number of connections; each [`crate::notifications::Listener`] adds one.
    pub pool_size: u32,
    /// How long a call waits for a connection.
    pub acquire_timeout: Duration,
    /// How long a statement may run before the server ends it.
    pub statement_timeout: Duration,
    /// A shorter limit for the statements of the pool, set after the connection was checked: a pooler that drops the settings of
    /// start-up has those of the role, which are the same for all programs.
    pub read_timeout: Option<Duration>,
    /// The operator's origin for the audit: host, process, terminal.
    pub from_where: Option<String>,
    /// Called after each begin of a transaction, with how long it took: the wait for a connection, and the BEGIN.
    pub on_begin: Option<fn(Duration)>,
}

impl StoreOptions {
    /// Defaults: ten connections, 5 s for a connection, 30 s for a statement.
    pub fn new(url: impl Into<String>, application: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            direct_url: None,
            application: application.into(),
            pool_size: 10,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            read_timeout: None,
            from_where: None,
            on_begin: None,
        }
    }

    /// Returns the settings of its connections.
    pub(crate) fn settings(&self) -> SessionSettings {
        SessionSettings { statement_timeout: self.statement_timeout }
    }
}

/// The database. Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: PgPool,
    connect: Arc<ConnectSettings>,
    /// The origin of what its transactions do, for the audit; `None`: that of the connection.
    origin: Option<Arc<str>>,
    /// The jobs that its transactions may change; `None`: all.
    only_jobs: Option<Arc<JobScope>>,
}

/// How connections are made, of the pool and beside it.
#[derive(Debug)]
struct ConnectSettings {
    session: SessionSettings,
    on_begin: Option<fn(Duration)>,
    /// Of connections that are no part of the pool.
    direct: PgConnectOptions,
    /// Whether these do not go the pool's way.
    has_direct_url: bool,
}

impl Store {
    /// Prepares the pool. The first use connects, so this succeeds while the server is down.
    ///
    /// Every connection gets `synchronous_commit = on` and `READ COMMITTED`, whatever the server's or the role's
    /// defaults: the protocol's promises rest on both. A connection without them is refused: see
    /// [`Self::check_settings`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] when the URL cannot be read.
    pub fn open(options: &StoreOptions) -> Result<Self, StoreError> {
        let connect = connect_options(options, &options.url)?;
        let direct = match &options.direct_url {
            Some(url) => connect_options(options, url)?,
            None => connect.clone(),
        };
        let settings = options.settings();
        let read_timeout = options.read_timeout;
        let pool = PgPoolOptions::new()
            .max_connections(options.pool_size.max(1))
            .acquire_timeout(options.acquire_timeout)
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    check_connection(settings, connection).await?;
                    set_read_timeout(read_timeout, connection).await
                })
            })
            .before_acquire(|connection, about| {
                let rested = about.idle_for >= PING_AFTER_IDLE;
                Box::pin(async move {
                    if rested { ping_with_timeout(connection).await } else { Ok(true) }
                })
            })
            .after_release(|connection, _| Box::pin(ping_with_timeout(connection)))
            .connect_lazy_with(connect);
        let has_direct_url = options.direct_url.is_some();
        let on_begin = options.on_begin;
        let connect = ConnectSettings { session: settings, on_begin, direct, has_direct_url };
        Ok(Self { pool, connect: Arc::new(connect), origin: None, only_jobs: None })
    }

    /// Returns a clone whose transactions come from `place` for the audit: for programs that act for several people over one pool.
    #[must_use]
    pub fn from_place(&self, place: &str) -> Self {
        Self { origin: Some(place.into()), ..self.clone() }
    }

    /// Returns a clone whose transactions change only these jobs: the database refuses others with [`StoreError::OutOfScope`].
    ///
    /// It knows a change by its audit. Statements beside a transaction, and changes that are not recorded, are not looked at: their
    /// callers compare [`Self::only_jobs`].
    ///
    /// [`StoreError::OutOfScope`]: crate::StoreError::OutOfScope
    #[must_use]
    pub fn within(&self, only_jobs: JobScope) -> Self {
        Self { only_jobs: Some(Arc::new(only_jobs)), ..self.clone() }
    }

    /// The jobs to which its transactions are restricted.
    pub fn only_jobs(&self) -> Option<&JobScope> {
        self.only_jobs.as_deref()
    }

    pub(crate) fn origin(&self) -> Option<Arc<str>> {
        self.origin.clone()
    }

    /// Returns the pool, for this crate's functions and for tests that read rows.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Returns the maximum number of connections in the pool.
    pub fn connections(&self) -> u32 {
        self.pool.options().get_max_connections()
    }

    /// How connections are made that are no part of the pool: without a pooler in between, where there is another way.
    pub fn direct_options(&self) -> PgConnectOptions {
        self.connect.direct.clone()
    }

    pub(crate) fn on_begin(&self) -> Option<fn(Duration)> {
        self.connect.on_begin
    }

    /// A place for one connection that is nobody else's.
    pub(crate) fn single_connection_pool(&self) -> PgPool {
        PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.pool.options().get_acquire_timeout())
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect({
                let settings = self.connect.session;
                move |connection, _| Box::pin(check_connection(settings, connection))
            })
            .connect_lazy_with(self.direct_options())
    }

    /// Opens a connection outside the pool, with `options` added to the common settings.
    pub(crate) async fn connect(
        &self,
        options: &PgConnectOptions,
    ) -> Result<PgConnection, sqlx::Error> {
        let mut connection = options.connect().await?;
        check_connection(self.connect.session, &mut connection).await?;
        Ok(connection)
    }

    /// Connects once and hangs up: to learn the true reason where the pool would only say that it has no connection,
    /// and to see that the server applies the settings of a connection. Through a pooler it connects twice at the same
    /// time, which shows whether that hands out sessions by the transaction; and where there is a direct way, it sees
    /// that both lead to the same database.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Refused`]; [`StoreError::SettingsNotApplied`]: a pooler drops them
    /// or shares sessions, or the two ways lead to two databases.
    pub async fn check_settings(&self) -> Result<(), StoreError> {
        let connecting = async {
            let mut connection = self.pool.connect_options().connect().await?;
            if self.connect.session.check(&mut connection).await? == Route::Pooled {
                let second = self.connect(&self.pool.connect_options()).await?;
                second.close().await?;
            }
            if self.connect.has_direct_url {
                let mut direct = self.connect(&self.connect.direct).await?;
                check_same_database(&mut connection, &mut direct).await?;
                direct.close().await?;
            }
            connection.close().await
        };
        Ok(with_client_timeout(connecting).await?)
    }

    /// Checks that the server answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(self.with_timeout()).await?;
        Ok(())
    }

    /// Closes the connections; running statements end first.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// What every connection begins with.
pub(crate) fn connect_options(
    options: &StoreOptions,
    url: &str,
) -> Result<PgConnectOptions, StoreError> {
    let connect = PgConnectOptions::from_str(url)
        .map_err(StoreError::Refused)?
        .application_name(&options.application)
        // The caller that waits for a slow statement reports it, without its whole text.
        .disable_statement_logging()
        .options(options.settings().options());
    // The default of the audit's column, so that every statement records it.
    Ok(match &options.from_where {
        Some(place) => connect.options([("sexton.from_where", place)]),
        None => connect,
    })
}

/// Whatever its way is: it has its settings, and nobody used its session before.
async fn check_connection(
    settings: SessionSettings,
    connection: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    settings.check(connection).await.map(drop)
}

async fn set_read_timeout(
    limit: Option<Duration>,
    connection: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    if let Some(limit) = limit {
        sqlx::query("-- set_read_timeout\nSELECT set_config('statement_timeout', $1, false)")
            .bind(limit.as_millis().to_string())
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Checks a connection that comes back, and one that is taken after a rest. The pool itself checks too, but waits
/// for the answer without end and counts the connection as in use all the while: each lost answer would make the
/// pool smaller for good. An error here closes the connection.
pub(crate) async fn ping_with_timeout(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let answer = tokio::time::timeout(PING_TIMEOUT, connection.ping()).await;
    answer.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))?;
    Ok(true)
}
