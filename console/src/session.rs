//! What every command works with: settings, the database, the output, the actor.
//!
//! The database is connected only for commands that need it, and its schema is checked first, so
//! that a missing table is never the message.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_service::settings::{ConsoleSettings, ServerUrl, process_environment};
use sexton_store::{Store, StoreError, StoreOptions, status};
use tokio::time::timeout;

use crate::actor;
use crate::failure::Failure;
use crate::show::Output;

/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// As the server lists the connection.
const APPLICATION_NAME: &str = "sexton";
/// One question after the other. A second connection would be opened while the first, given back, still shows
/// that it answers; and each costs a process of the server's, which begins by reading the catalogue.
const POOL_CONNECTIONS: u32 = 1;

/// One command's surroundings.
#[derive(Debug)]
pub struct Session {
    /// Where answers go.
    pub out: Output,
    /// For the audit.
    pub actor: String,
}

impl Session {
    /// For an answer as JSON or for people.
    pub fn new(json: bool) -> Self {
        Self { out: Output::new(json), actor: actor::actor() }
    }

    /// The settings.
    ///
    /// # Errors
    ///
    /// [`Failure::Settings`] with everything that is wrong.
    pub fn settings(&self) -> Result<ConsoleSettings, Failure> {
        Ok(ConsoleSettings::from_env(process_environment())?)
    }

    /// The database, which answers, whatever its schema.
    ///
    /// # Errors
    ///
    /// [`Failure::Unreachable`] with the server's name and the reason.
    pub async fn database(&self) -> Result<Store, Failure> {
        let settings = self.settings()?;
        let direct = settings.database_direct_url.as_ref();
        self.connect(settings.database_url()?, direct).await
    }

    /// The database without a pooler in between, where there is such a way.
    ///
    /// # Errors
    ///
    /// As [`Self::database`].
    pub async fn direct_database(&self) -> Result<Store, Failure> {
        let settings = self.settings()?;
        let server =
            settings.database_direct_url.as_ref().map_or_else(|| settings.database_url(), Ok)?;
        self.connect(server, None).await
    }

    async fn connect(
        &self,
        server: &ServerUrl,
        direct: Option<&ServerUrl>,
    ) -> Result<Store, Failure> {
        let url = server.expose();
        let options = StoreOptions {
            direct_url: direct.map(|url| url.expose().to_owned()),
            pool_size: POOL_CONNECTIONS,
            // The answer about an unreachable server is the probe's.
            acquire_timeout: CONNECT_TIMEOUT * 2,
            from_where: Some(actor::origin()),
            ..StoreOptions::new(url, APPLICATION_NAME)
        };
        let store = Store::open(&options)?;
        // At the same time: the pool would keep trying and hide the reason.
        let both = async { tokio::try_join!(store.check_settings(), store.ping()) };
        match timeout(CONNECT_TIMEOUT, both).await {
            Ok(Ok(_)) => Ok(store),
            Ok(Err(error)) => Err(unreachable(&server.to_string(), &error)),
            Err(_) => Err(Failure::Unreachable(format!(
                "the database at {server} does not answer within {} s; check DATABASE_URL and that \
                 PostgreSQL runs",
                CONNECT_TIMEOUT.as_secs()
            ))),
        }
    }

    /// The database, with a schema that this program knows.
    ///
    /// # Errors
    ///
    /// As [`Self::database`], and [`Failure::Schema`].
    pub async fn store(&self) -> Result<Store, Failure> {
        let store = self.database().await?;
        match store.check_schema().await {
            Err(StoreError::Schema(why)) => Err(Failure::Schema(format!(
                "the database is not ready for this program: {why}; run `sexton migrate`"
            ))),
            other => Ok(other.map(|()| store)?),
        }
    }

    /// The database's clock.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn now(&self, store: &Store) -> Result<DateTime<Utc>, Failure> {
        Ok(status::clock(store).await?)
    }
}

fn unreachable(server: &str, error: &StoreError) -> Failure {
    match error {
        StoreError::Unavailable(cause) => Failure::Unreachable(format!(
            "the database at {server} does not answer: {cause}; check DATABASE_URL and that \
             PostgreSQL runs"
        )),
        StoreError::Refused(cause) => Failure::Unreachable(format!(
            "the database at {server} refuses the connection: {cause}; check user, password and \
             database in DATABASE_URL"
        )),
        StoreError::SettingsNotApplied(why) => Failure::Unreachable(format!(
            "the connection to the database at {server} is refused: {why}"
        )),
        other => Failure::Unreachable(other.to_string()),
    }
}
