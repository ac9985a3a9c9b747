//! The settings of `sexton serve`.

use std::net::SocketAddr;
use std::time::Duration;

use sexton_model::access::Role;
use sexton_model::network::Network;
use sexton_model::oidc::ProviderSettings;

use super::identity::read_provider;
use super::{ConsoleSettings, host_name, read_telemetry};
use crate::settings::effective::{self, EffectiveSetting};
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
    /// What stands before the path of every address: empty, or with a slash before and none behind it.
    pub base_path: String,
    /// What requests from this machine may do without a token or a log-in; `None`: nothing.
    pub local_role: Option<Role>,
    /// Requests of one token or person in a minute; 0: any number.
    pub requests_per_minute: u32,
    /// Whether all clients come by HTTPS, whatever proxies say.
    pub is_behind_tls: bool,
    /// From where proxies connect that are trusted.
    pub trusted_proxies: Vec<Network>,
    /// The header in which they name a person, in lower case.
    pub proxy_user_header: Option<String>,
    /// The header in which they give that person's role, in lower case.
    pub proxy_role_header: Option<String>,
    /// The role of people without that header; `None`: they are refused.
    pub proxy_role: Option<Role>,
    /// The OpenID provider by which people can log in, too.
    pub provider: Option<ProviderSettings>,
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
    /// All of these, to be shown.
    pub effective: Vec<EffectiveSetting>,
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
        let mut reader = Reader::new(Program::Server, variables.clone());
        let database_url = reader.value(&table::DATABASE_URL);
        let db_pool_size = reader.value(&table::DB_POOL_SIZE);
        let instance = reader.value_or(&table::SEXTON_INSTANCE, |_| host_name());
        let serve_addr = reader.value(&table::SERVE_ADDR);
        let base_path = reader.value(&table::SEXTON_BASE_PATH);
        let local_role = reader.value(&table::SERVE_LOCAL_ROLE);
        let requests_per_minute = reader.value(&table::SERVE_REQUESTS_PER_MINUTE);
        let is_behind_tls = reader.value(&table::SERVE_BEHIND_TLS);
        let trusted_proxies = reader.value(&table::SERVE_TRUSTED_PROXIES);
        let proxy_user_header = reader.value(&table::SERVE_PROXY_USER_HEADER);
        let proxy_role_header = reader.value(&table::SERVE_PROXY_ROLE_HEADER);
        let proxy_role = reader.value(&table::SERVE_PROXY_ROLE);
        if proxy_user_header.is_some() && trusted_proxies.is_none() {
            let reason = "set SERVE_TRUSTED_PROXIES, too: nobody else may send this header";
            reader.refuse_if_set(&table::SERVE_PROXY_USER_HEADER, reason);
        }
        if proxy_user_header.is_some() && proxy_role_header.is_none() && proxy_role == Some(None) {
            let reason = "set SERVE_PROXY_ROLE or SERVE_PROXY_ROLE_HEADER, too: without a role everybody is refused";
            reader.refuse_if_set(&table::SERVE_PROXY_USER_HEADER, reason);
        }
        if proxy_user_header.is_none() {
            let reason = "set SERVE_PROXY_USER_HEADER, too: without a name this says nothing";
            reader.refuse_if_set(&table::SERVE_PROXY_ROLE_HEADER, reason);
        }
        let provider = read_provider(&mut reader);
        let pings_per_minute = reader.value(&table::PINGS_PER_MINUTE);
        let shutdown_grace = reader.value(&table::SHUTDOWN_GRACE_MS);
        let health_addr = reader.value(&table::HEALTH_ADDR);
        let telemetry = read_telemetry(&mut reader);
        let settings = |doctor: ConsoleSettings| {
            let (database_url, instance) = (database_url?, instance?);
            let effective = effective(&database_url, &instance, &doctor, &variables);
            Some(Self {
                database_url,
                db_pool_size: db_pool_size?,
                instance,
                serve_addr: serve_addr?,
                base_path: base_path.unwrap_or_default(),
                local_role: local_role?,
                requests_per_minute: requests_per_minute?,
                is_behind_tls: is_behind_tls?,
                trusted_proxies: trusted_proxies.unwrap_or_default(),
                proxy_user_header,
                proxy_role_header,
                proxy_role: proxy_role?,
                provider,
                pings_per_minute: pings_per_minute?,
                shutdown_grace: shutdown_grace?,
                health_addr: health_addr?,
                telemetry: telemetry?,
                doctor,
                effective,
            })
        };
        match doctor {
            Ok(doctor) => reader.finish(settings(doctor)),
            // The problems of this program first: it has those in common with the console.
            Err(errors) => reader.finish(Some(())).and(Err(errors)),
        }
    }
}

/// The examination reads settings of the command line, too.
fn effective(
    database_url: &ServerUrl,
    instance: &str,
    doctor: &ConsoleSettings,
    variables: &[(String, String)],
) -> Vec<EffectiveSetting> {
    let mut known =
        vec![("DATABASE_URL", database_url.to_string()), ("SEXTON_INSTANCE", instance.to_owned())];
    let urls =
        [("DATABASE_DIRECT_URL", &doctor.database_direct_url), ("AMQP_URL", &doctor.amqp_url)];
    known
        .extend(urls.into_iter().filter_map(|(name, url)| Some((name, url.as_ref()?.to_string()))));
    effective::list(&[Program::Server, Program::Console], variables, &known)
}
