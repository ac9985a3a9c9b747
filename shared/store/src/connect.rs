//! The pool of connections.

use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};

use crate::StoreError;
use crate::client_timeout::with_client_timeout;
use crate::session_settings::SessionSettings;

/// How long the ping of a connection that returns to the pool may take.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was idle for less than this has just answered, and is not pinged when it is taken.
pub(crate) const PING_AFTER_IDLE: Duration = Duration::from_secs(1);

/// Options of the connections.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// Shown in `pg_stat_activity`.
    pub application: String,
    /// Maximum number of connections; each [`crate::notifications::Listener`] adds one.
    pub pool_size: u32,
    /// How long a call waits for a connection.
    pub acquire_timeout: Duration,
    /// How long a statement may run before the server ends it.
    pub statement_timeout: Duration,
    /// The operator's origin for the audit: host, process, terminal.
    pub from_where: Option<String>,
}

impl StoreOptions {
    /// Defaults: ten connections, 5 s for a connection, 30 s for a statement.
    pub fn new(url: impl Into<String>, application: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            application: application.into(),
            pool_size: 10,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            from_where: None,
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
    settings: SessionSettings,
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
        let connect = connect_options(options)?;
        let settings = options.settings();
        let pool = PgPoolOptions::new()
            .max_connections(options.pool_size.max(1))
            .acquire_timeout(options.acquire_timeout)
            .test_before_acquire(false)
            .after_connect(move |connection, _| Box::pin(settings.check(connection)))
            .before_acquire(|connection, about| {
                let rested = about.idle_for >= PING_AFTER_IDLE;
                Box::pin(async move {
                    if rested { ping_with_timeout(connection).await } else { Ok(true) }
                })
            })
            .after_release(|connection, _| Box::pin(ping_with_timeout(connection)))
            .connect_lazy_with(connect);
        Ok(Self { pool, settings })
    }

    /// Returns the pool, for this crate's functions and for tests that read rows.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Returns the maximum number of connections in the pool.
    pub fn connections(&self) -> u32 {
        self.pool.options().get_max_connections()
    }

    /// Returns a pool for one connection that is shared with nobody.
    pub(crate) fn single_connection_pool(&self) -> PgPool {
        PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.pool.options().get_acquire_timeout())
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect({
                let settings = self.settings;
                move |connection, _| Box::pin(settings.check(connection))
            })
            .connect_lazy_with((*self.pool.connect_options()).clone())
    }

    /// Opens a connection outside the pool, with `options` added to the common settings.
    pub(crate) async fn connect(
        &self,
        options: &PgConnectOptions,
    ) -> Result<PgConnection, sqlx::Error> {
        let mut connection = options.connect().await?;
        self.settings.check(&mut connection).await?;
        Ok(connection)
    }

    /// Connects once and disconnects, to learn the exact error where the pool would only report a timeout, and to
    /// check that the server applies the settings of a connection.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Refused`]; [`StoreError::SettingsNotApplied`]: a pooler drops
    /// them.
    pub async fn check_settings(&self) -> Result<(), StoreError> {
        let connecting = async {
            let connection = self.connect(&self.pool.connect_options()).await?;
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

/// Returns the options that every connection starts with.
pub(crate) fn connect_options(options: &StoreOptions) -> Result<PgConnectOptions, StoreError> {
    let connect = PgConnectOptions::from_str(&options.url)
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

/// Pings a connection that returns to the pool, or that was idle before its use. The pool's own ping waits without a
/// limit and counts the connection as in use meanwhile: each lost answer would make the pool smaller for good. An
/// error here closes the connection.
pub(crate) async fn ping_with_timeout(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let answer = tokio::time::timeout(PING_TIMEOUT, connection.ping()).await;
    answer.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))?;
    Ok(true)
}
