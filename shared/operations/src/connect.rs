//! The connection to the database that operations run over.

use std::time::Duration;

use sexton_service::settings::{ConsoleSettings, ServerUrl, SettingsErrors};
use sexton_store::{Store, StoreError, StoreOptions};
use tokio::time::timeout;

use crate::actor::Actor;

/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a connection failed or is unusable.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A setting is invalid.
    #[error(transparent)]
    Settings(#[from] SettingsErrors),
    /// The database does not answer, or refuses the connection.
    #[error("{0}")]
    Unreachable(String),
    /// The schema is older or newer than this program.
    #[error("the database is not ready for this program: {0}; run `sexton migrate`")]
    Schema(String),
    /// Another error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The servers, and the actor of the connections.
#[derive(Clone, Copy, Debug)]
pub struct Connector<'a> {
    /// Where the servers are.
    pub settings: &'a ConsoleSettings,
    /// The audit records this actor's origin with every action over the connections.
    pub actor: &'a Actor,
    /// The application's name in PostgreSQL's list of connections.
    pub application: &'a str,
    /// Maximum number of connections, at least 1.
    pub connections: u32,
}

impl Connector<'_> {
    /// Connects to the database, whatever its schema, and waits at most five seconds for an answer.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Unreachable`] with the server's name and the reason.
    pub async fn open_any_schema(&self) -> Result<Store, ConnectError> {
        let direct = self.settings.database_direct_url.as_ref();
        self.connect(self.settings.database_url()?, direct).await
    }

    /// Connects to the database by `DATABASE_DIRECT_URL` alone if it is set, as [`Self::open_any_schema`] otherwise.
    ///
    /// # Errors
    ///
    /// As [`Self::open_any_schema`].
    pub async fn open_direct(&self) -> Result<Store, ConnectError> {
        match &self.settings.database_direct_url {
            Some(server) => self.connect(server, None).await,
            None => self.open_any_schema().await,
        }
    }

    /// Connects to the database of another platform, and checks that this program knows its schema.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]. Its remedies name `DATABASE_URL`, which stands for the URL given here.
    pub async fn open_other(&self, server: &ServerUrl) -> Result<Store, ConnectError> {
        check_schema(self.connect(server, None).await?).await
    }

    async fn connect(
        &self,
        server: &ServerUrl,
        direct: Option<&ServerUrl>,
    ) -> Result<Store, ConnectError> {
        let options = StoreOptions {
            direct_url: direct.map(|url| url.expose().to_owned()),
            pool_size: self.connections,
            // Longer than the probe's limit, so that the probe reports an unreachable server.
            acquire_timeout: CONNECT_TIMEOUT * 2,
            from_where: self.actor.origin.clone(),
            ..StoreOptions::new(server.expose(), self.application)
        };
        let store = Store::open(&options)?;
        // First the check, which connects past the pool: the pool would keep trying and hide the reason. Not at the same
        // time, since the pool's connection could take the very session that the check looks for.
        let both = async {
            store.check_settings().await?;
            store.ping().await
        };
        match timeout(CONNECT_TIMEOUT, both).await {
            Ok(Ok(())) => Ok(store),
            Ok(Err(error)) => Err(unreachable(&server.to_string(), &error)),
            Err(_) => Err(ConnectError::Unreachable(format!(
                "the database at {server} does not answer within {} s; check DATABASE_URL and that \
                 PostgreSQL runs",
                CONNECT_TIMEOUT.as_secs()
            ))),
        }
    }

    /// Connects as [`Self::open_any_schema`], and checks that this program knows the schema, so that a missing table
    /// is never the message.
    ///
    /// # Errors
    ///
    /// As [`Self::open_any_schema`], and [`ConnectError::Schema`].
    pub async fn open(&self) -> Result<Store, ConnectError> {
        check_schema(self.open_any_schema().await?).await
    }
}

async fn check_schema(store: Store) -> Result<Store, ConnectError> {
    match store.check_schema().await {
        Err(StoreError::Schema(why)) => Err(ConnectError::Schema(why)),
        other => Ok(other.map(|()| store)?),
    }
}

fn unreachable(server: &str, error: &StoreError) -> ConnectError {
    ConnectError::Unreachable(match error {
        StoreError::Unavailable(cause) => format!(
            "the database at {server} does not answer: {cause}; check DATABASE_URL and that \
             PostgreSQL runs"
        ),
        StoreError::Refused(cause) => format!(
            "the database at {server} refuses the connection: {cause}; check user, password and \
             database in DATABASE_URL"
        ),
        StoreError::SettingsNotApplied(why) => {
            format!("the connection to the database at {server} is refused: {why}")
        }
        other => other.to_string(),
    })
}
