//! The versions under test, for the report.

use std::time::Duration;

use anyhow::{Context as _, Result};
use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::test_servers::TestServers;
use crate::commit;

const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// A line each: the platform, PostgreSQL, RabbitMQ.
pub(super) async fn versions(site: &TestServers) -> Result<Vec<String>> {
    let postgres = timeout(VERSION_TIMEOUT, postgres(&site.database_url)).await??;
    let rabbit = timeout(VERSION_TIMEOUT, rabbit(&site.amqp_url)).await??;
    let commit = commit::describe().map_or_else(String::new, |commit| format!(" at {commit}"));
    Ok(vec![
        format!("Sexton {}{commit}", env!("CARGO_PKG_VERSION")),
        format!("PostgreSQL {postgres}"),
        format!("RabbitMQ {rabbit}"),
    ])
}

async fn postgres(url: &str) -> Result<String> {
    let mut connection = PgConnection::connect(url).await?;
    let version = sqlx::query_scalar("SHOW server_version").fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(version)
}

/// The broker sends its version before anybody logs in.
async fn rabbit(url: &str) -> Result<String> {
    let begin = url.rfind('@').map_or(0, |at| at + 1);
    let address = url[begin..].split('/').next().context("a broker's URL without a host")?;
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"AMQP\x00\x00\x09\x01").await?;
    let mut greeting = vec![0; 4096];
    let mut length = 0;
    loop {
        let count = stream.read(&mut greeting[length..]).await?;
        length += count;
        if let Some(version) = version(&greeting[..length]) {
            return Ok(version);
        }
        anyhow::ensure!(count > 0, "the broker does not say its version");
    }
}

/// A table's entry: the name, `S` for a long text, its length, the text.
fn version(greeting: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"\x07versionS";
    let at = greeting.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    let length = greeting.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)?;
    let text = greeting.get(at + 4..at + 4 + length as usize)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_once_the_greeting_is_whole_enough() {
        let greeting = b"..\x07productS\0\0\0\x08RabbitMQ\x07versionS\0\0\0\x063.10.8..";
        assert_eq!(version(greeting), Some("3.10.8".to_owned()));
        assert_eq!(version(&greeting[..greeting.len() - 5]), None);
        assert_eq!(version(b"HTTP/1.1 400"), None);
    }
}
