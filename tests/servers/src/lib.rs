//! PostgreSQL and RabbitMQ for the demo and the tests, on whatever machine this is.
//!
//! [`provide`] takes the first of these that is possible, for each of the two servers:
//!
//! 1. `DATABASE_URL` or `AMQP_URL`, if set, names a *server*. Databases and namespaces are created and
//!    dropped there by those who need them; the named database itself is never touched.
//! 2. Installed programs are started as private instances: free loopback ports, TCP only, data under
//!    the build's target folder if the server's user can reach it, else in the temporary folder;
//!    `TEST_SERVERS_FOLDER` names another folder, such as one in memory. With
//!    `TEST_SERVERS_ROOT` they are those of another system, whose files lie in the folder that it
//!    names: another generation of servers (see `scripts/next-servers.sh`), or an error.
//! 3. Docker Compose, where an engine runs.
//! 4. On Debian and Ubuntu, as root or with a sudo that asks nothing, the distribution's packages are
//!    installed without starting their services, then used as in 2.
//! 5. Otherwise one sentence says what to install.
//!
//! `TEST_SERVERS_VERSIONS`, for example `postgresql=17 rabbitmq=4.0`, refuses servers of other versions,
//! wherever they come from.
//!
//! Nothing that already runs on the machine is touched. What was started is stopped with its owner:
//! in good order, after Ctrl-C, a panic, or SIGKILL (see `guard`).
//!
//! Tests that must kill, freeze or wipe a server start one for themselves:
//! [`PostgresServer::start_private`], [`RabbitServer::start_private`]. All others share one pair:
//! [`shared`].

mod clock;
mod compose;
mod error;
mod faketime;
mod folder;
mod guard;
mod install;
mod installation;
mod instance;
mod pgbouncer;
mod ports;
mod postgres;
mod processes;
mod programs;
mod rabbit;
mod ready;
mod runner;
mod source;
mod versions;

use std::time::Duration;

use tokio::sync::OnceCell;

pub use error::ServersError;
pub use faketime::faketime_library;
pub use pgbouncer::PgBouncer;
pub use postgres::{Durability, PostgresOptions, PostgresServer};
pub use rabbit::{RabbitOptions, RabbitServer};

/// How long a server named in the environment may take to answer: it may be starting, too.
const NAMED_DEADLINE: Duration = Duration::from_secs(30);

static SHARED: OnceCell<Servers> = OnceCell::const_new();

/// The servers that the caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// PostgreSQL and RabbitMQ.
    Both,
    /// PostgreSQL alone; [`Servers::amqp_url`] is empty.
    Postgres,
}

/// A pair of servers to work with, and the ownership of those that were started for it.
///
/// Dropping it stops what it owns in the background; [`Servers::shutdown`] waits.
#[derive(Debug)]
pub struct Servers {
    /// A superuser's URL of a database of the server; callers use only the server.
    pub database_url: String,
    /// The broker's URL.
    pub amqp_url: String,
    postgres_version: String,
    rabbit_version: String,
    postgres: Option<PostgresServer>,
    rabbit: Option<RabbitServer>,
}

/// Provides the servers, in the order that the module's documentation lists.
///
/// # Errors
///
/// A [`ServersError`] that says what to do. Nothing is left running then.
pub async fn provide(needed: Needed) -> Result<Servers, ServersError> {
    provide_with(needed, Durability::Fast).await
}

/// As [`provide`]; started servers keep committed data through a power cut, as production servers
/// do: for measurements.
///
/// # Errors
///
/// As [`provide`].
pub async fn provide_durable(needed: Needed) -> Result<Servers, ServersError> {
    provide_with(needed, Durability::Full).await
}

async fn provide_with(needed: Needed, durability: Durability) -> Result<Servers, ServersError> {
    folder::sweep().await;
    let (postgres, rabbit) = tokio::join!(provide_postgres(durability), provide_rabbit(needed));
    let ((database_url, postgres), (amqp_url, rabbit)) = (postgres?, rabbit?);
    let postgres_version = versions::postgres(&database_url).await?;
    let rabbit_version = match needed {
        Needed::Both => versions::rabbit(&amqp_url).await?,
        Needed::Postgres => String::new(),
    };
    Ok(Servers { database_url, amqp_url, postgres_version, rabbit_version, postgres, rabbit })
}

/// The pair of servers that all tests of this process share, provided at the first call.
///
/// Under `make test` the environment names them. Under a plain `cargo test` they are started here, and
/// their guards stop them when the test process ends: destructors of statics never run.
pub async fn shared() -> Result<&'static Servers, ServersError> {
    SHARED.get_or_try_init(|| provide(Needed::Both)).await
}

/// The shared pair, if it has already been provided.
pub fn started() -> Option<&'static Servers> {
    SHARED.get()
}

impl Servers {
    /// One line for a person: which servers these are, of which versions.
    pub fn description(&self) -> String {
        let named = |variable| format!("named by {variable}");
        let port = |url: &str| {
            let address = url.rsplit('@').next().unwrap_or_default();
            format!("private on {}", address.split('/').next().unwrap_or_default())
        };
        let postgres = match &self.postgres {
            Some(server) => port(server.url()),
            None => named("DATABASE_URL"),
        };
        let postgres = format!("PostgreSQL {} {postgres}", self.postgres_version);
        if self.amqp_url.is_empty() {
            return postgres;
        }
        let rabbit = match &self.rabbit {
            Some(server) => port(server.url()),
            None => named("AMQP_URL"),
        };
        format!("{postgres}, RabbitMQ {} {rabbit}", self.rabbit_version)
    }

    /// The version of PostgreSQL, as the server says it, for example `17.2`.
    pub fn postgres_version(&self) -> &str {
        &self.postgres_version
    }

    /// The version of RabbitMQ, as the broker says it, for example `4.0.5`; empty without a broker.
    pub fn rabbit_version(&self) -> &str {
        &self.rabbit_version
    }

    /// Ends the servers that were started for this pair and deletes their data.
    pub async fn shutdown(self) -> Result<(), ServersError> {
        let postgres = async {
            match self.postgres {
                Some(server) => server.end().await,
                None => Ok(()),
            }
        };
        let rabbit = async {
            match self.rabbit {
                Some(server) => server.end().await,
                None => Ok(()),
            }
        };
        let (postgres, rabbit) = tokio::join!(postgres, rabbit);
        postgres.and(rabbit)
    }
}

async fn provide_postgres(
    durability: Durability,
) -> Result<(String, Option<PostgresServer>), ServersError> {
    const VARIABLE: &str = "DATABASE_URL";
    if let Some(url) = named(VARIABLE) {
        let outcome = ready::until(NAMED_DEADLINE, async || ready::postgres(&url).await, || None);
        outcome.await.map_err(|reason| silent(VARIABLE, reason))?;
        return Ok((url, None));
    }
    // No test kills this one: tests that kill a server start their own.
    let options = PostgresOptions { durability, ..Default::default() };
    let server = PostgresServer::start_private(options).await?;
    Ok((server.url().to_owned(), Some(server)))
}

async fn provide_rabbit(needed: Needed) -> Result<(String, Option<RabbitServer>), ServersError> {
    const VARIABLE: &str = "AMQP_URL";
    if needed == Needed::Postgres {
        return Ok((String::new(), None));
    }
    if let Some(url) = named(VARIABLE) {
        let outcome = ready::until(NAMED_DEADLINE, async || ready::rabbit(&url).await, || None);
        outcome.await.map_err(|reason| silent(VARIABLE, reason))?;
        return Ok((url, None));
    }
    let server = RabbitServer::start_private(RabbitOptions::default()).await?;
    Ok((server.url().to_owned(), Some(server)))
}

/// The variable's value, unless unset or empty.
fn named(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

fn silent(variable: &'static str, reason: String) -> ServersError {
    ServersError::NamedServerSilent { variable, reason }
}
