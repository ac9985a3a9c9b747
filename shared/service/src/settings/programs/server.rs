//! The settings of `sexton serve`.

use std::net::SocketAddr;
use std::time::Duration;

use sexton_model::access::Role;

use super::{ConsoleSettings, host_name, read_telemetry};
use crate::settings::problem::SettingsErrors;
use crate::settings::reader::Reader;
use crate::settings::server_url::ServerUrl;
use crate::settings::setting::Program;
use crate::settings::table;
use crate::telemetry::TelemetrySettings;

/// The settings of `sexton serve`.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The URL of PostgreSQL.
    pub database_url: ServerUrl,
    /// Connections to PostgreSQL; 3..=500.
    pub db_pool_size: u32,
    /// The process's name.
    pub instance: String,
    /// The address of the API and of pings; port 0 takes a free one.
    pub serve_addr: SocketAddr,
    /// What requests from this machine may do without a token; `None`: nothing.
    pub local_role: Option<Role>,
    /// Pings of one check in a minute.
    pub pings_per_minute: u32,
    /// From the first signal to the hard stop.
    pub shutdown_grace: Duration,
    /// The address of the health server; port 0 takes a free one.
    pub health_addr: SocketAddr,
    /// Logs.
    pub telemetry: TelemetrySettings,
    /// The servers that the API's status and doctor look at; without `AMQP_URL` the database alone.
    pub doctor: ConsoleSettings,
}

impl ServerSettings {
    /// Parses the settings in `variables` (usually [`crate::settings::process_environment`]).
    ///
    /// # Errors
    ///
    /// All problems at once.
    pub fn from_env(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsErrors> {
        let variables: Vec<(String, String)> = variables.into_iter().collect();
        let doctor = ConsoleSettings::from_env(variables.clone());
        let mut reader = Reader::new(Program::Server, variables);
        let database_url = reader.value(&table::DATABASE_URL);
        let db_pool_size = reader.value(&table::DB_POOL_SIZE);
        let instance = reader.value_or(&table::SEXTON_INSTANCE, |_| host_name());
        let serve_addr = reader.value(&table::SERVE_ADDR);
        let local_role = reader.value(&table::SERVE_LOCAL_ROLE);
        let pings_per_minute = reader.value(&table::PINGS_PER_MINUTE);
        let shutdown_grace = reader.value(&table::SHUTDOWN_GRACE_MS);
        let health_addr = reader.value(&table::HEALTH_ADDR);
        let telemetry = read_telemetry(&mut reader);
        let settings = || {
            Some((
                database_url?,
                db_pool_size?,
                instance?,
                serve_addr?,
                local_role?,
                pings_per_minute?,
                shutdown_grace?,
                health_addr?,
                telemetry?,
            ))
        };
        // The problems of this program first: it has those in common with the console.
        let (
            database_url,
            db_pool_size,
            instance,
            serve_addr,
            local_role,
            pings_per_minute,
            shutdown_grace,
            health_addr,
            telemetry,
        ) = reader.finish(settings())?;
        Ok(Self {
            database_url,
            db_pool_size,
            instance,
            serve_addr,
            local_role,
            pings_per_minute,
            shutdown_grace,
            health_addr,
            telemetry,
            doctor: doctor?,
        })
    }
}
