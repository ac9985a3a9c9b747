//! Reads the servers' versions, and compares them with the requested ones.
//!
//! `TEST_SERVERS_VERSIONS`, if set, asks: `postgresql=17 rabbitmq=4.0` refuses every server, whether
//! started here or named, whose version does not begin like that. So a run that shall show something
//! about a generation of servers cannot quietly be one on another.

use std::time::Duration;

use lapin::uri::{AMQPScheme, AMQPUri};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::error::ServersError;

/// Asks for versions.
const VARIABLE: &str = "TEST_SERVERS_VERSIONS";

/// How long a server that accepts connections may take to say what it is.
const DEADLINE: Duration = Duration::from_secs(20);

/// A broker's first words are about half a kilobyte.
const GREETING_MAX_BYTES: usize = 8 * 1024;

/// Where the two servers are called what in the variable, and by people.
const SERVERS: [(&str, &str); 2] = [("postgresql", "PostgreSQL"), ("rabbitmq", "RabbitMQ")];

/// The version of the PostgreSQL at `url`, for example `17.2`. The error is for a person.
pub(super) async fn postgres(url: &str) -> Result<String, ServersError> {
    let query = async {
        let mut connection = PgConnection::connect(url).await?;
        let version: String =
            sqlx::query_scalar("SHOW server_version").fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(version)
    };
    let version = timeout(DEADLINE, query).await.unwrap_or_else(|_| Err(sqlx::Error::PoolTimedOut));
    let version = version.map_err(|error| unanswered("PostgreSQL", error.to_string()))?;
    // The distribution's own version follows in parentheses.
    checked("PostgreSQL", version.split(' ').next().unwrap_or_default())
}

/// The version of the RabbitMQ at `url`, for example `4.0.5`.
pub(super) async fn rabbit(url: &str) -> Result<String, ServersError> {
    let greeting = timeout(DEADLINE, greeting(url)).await;
    let greeting = greeting.unwrap_or_else(|_| Err("it did not greet".into()));
    let greeting = greeting.map_err(|error| unanswered("RabbitMQ", error))?;
    let version = version_in(&greeting).unwrap_or_else(|| "of a version it does not tell".into());
    checked("RabbitMQ", &version)
}

/// What a broker answers to the protocol's header: a frame whose table describes the server. The AMQP
/// client reads it too, and keeps it to itself.
async fn greeting(url: &str) -> Result<Vec<u8>, String> {
    let uri: AMQPUri = url.parse()?;
    if uri.scheme == AMQPScheme::AMQPS {
        return Ok(Vec::new());
    }
    let address = (uri.authority.host.as_str(), uri.authority.port);
    let io = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).await.map_err(io)?;
    stream.write_all(b"AMQP\x00\x00\x09\x01").await.map_err(io)?;
    let mut greeting = vec![0; 7];
    stream.read_exact(&mut greeting).await.map_err(io)?;
    // Type, channel, size of the rest.
    let size = u32::from_be_bytes([greeting[3], greeting[4], greeting[5], greeting[6]]);
    greeting.resize((size as usize).min(GREETING_MAX_BYTES), 0);
    stream.read_exact(&mut greeting).await.map_err(io)?;
    Ok(greeting)
}

/// The text of the table's entry `version`.
fn version_in(greeting: &[u8]) -> Option<String> {
    const ENTRY: &[u8] = b"\x07versionS";
    let entry = greeting.windows(ENTRY.len()).position(|bytes| bytes == ENTRY)?;
    let (size, text) = greeting[entry + ENTRY.len()..].split_first_chunk::<4>()?;
    let text = text.get(..u32::from_be_bytes(*size) as usize)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The version, unless another one was requested.
fn checked(server: &'static str, running: &str) -> Result<String, ServersError> {
    let requests = std::env::var(VARIABLE).unwrap_or_default();
    for request in requests.split_whitespace() {
        let (name, requested) = request.split_once('=').unwrap_or_default();
        let named = SERVERS.iter().find(|(known, _)| *known == name);
        // A misspelt name would ask for nothing, and so is refused whatever runs.
        if named.is_none_or(|(_, named)| *named == server && !fits(running, requested)) {
            return Err(ServersError::OtherVersion {
                variable: VARIABLE,
                requested: request.to_owned(),
                running: format!("{server} {running}"),
            });
        }
    }
    Ok(running.to_owned())
}

/// Whether the version is the requested one, or one of its line.
fn fits(running: &str, requested: &str) -> bool {
    let rest = running.strip_prefix(requested).filter(|_| !requested.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn unanswered(server: &str, reason: String) -> ServersError {
    ServersError::Program { action: format!("ask {server} for its version"), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_fits_its_line_and_no_other() {
        assert!(fits("17.2", "17") && fits("4.0.5", "4.0") && fits("4.0", "4.0"));
        assert!(!fits("17.2", "1") && !fits("4.10.1", "4.1") && !fits("15.3", "17"));
        assert!(!fits("15.3", ""), "an empty request is a slip of the pen");
    }

    #[test]
    fn a_brokers_version_is_read_from_its_greeting() {
        let greeting = b"..\x07productS\0\0\0\x08RabbitMQ\x07versionS\0\0\0\x054.0.5\x08platform";
        assert_eq!(version_in(greeting).as_deref(), Some("4.0.5"));
        assert_eq!(version_in(&greeting[..36]), None, "cut off in the middle");
        assert_eq!(version_in(b""), None);
    }
}
