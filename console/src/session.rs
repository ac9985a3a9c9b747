//! What every command works with: settings, the database, the output, the actor.
//!
//! The database is connected only for commands that need it, and its schema is checked first, so
//! that a missing table is never the message.

use chrono::{DateTime, Utc};
use sexton_operations::actor::Actor;
use sexton_operations::connect::Connector;
use sexton_service::settings::{ConsoleSettings, process_environment};
use sexton_store::{Store, status};

use crate::actor;
use crate::failure::Failure;
use crate::show::Output;

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
    pub actor: Actor,
}

impl Session {
    /// For an answer as JSON or for people.
    pub fn new(json: bool) -> Self {
        Self { out: Output::new(json), actor: actor::from_process() }
    }

    /// The settings.
    ///
    /// # Errors
    ///
    /// [`Failure::Settings`] with everything that is wrong.
    pub fn settings(&self) -> Result<ConsoleSettings, Failure> {
        Ok(ConsoleSettings::from_env(process_environment())?)
    }

    /// How operations reach the servers.
    pub const fn connector<'a>(&'a self, settings: &'a ConsoleSettings) -> Connector<'a> {
        let (application, connections) = (APPLICATION_NAME, POOL_CONNECTIONS);
        Connector { settings, actor: &self.actor, application, connections }
    }

    /// The database, which answers, whatever its schema.
    ///
    /// # Errors
    ///
    /// [`Failure::Unreachable`] with the server's name and the reason.
    pub async fn database(&self) -> Result<Store, Failure> {
        Ok(self.connector(&self.settings()?).open_any_schema().await?)
    }

    /// The database without a pooler in between, where there is such a way.
    ///
    /// # Errors
    ///
    /// As [`Self::database`].
    pub async fn direct_database(&self) -> Result<Store, Failure> {
        Ok(self.connector(&self.settings()?).open_direct().await?)
    }

    /// The database, with a schema that this program knows.
    ///
    /// # Errors
    ///
    /// As [`Self::database`], and [`Failure::Schema`].
    pub async fn store(&self) -> Result<Store, Failure> {
        Ok(self.connector(&self.settings()?).open().await?)
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
