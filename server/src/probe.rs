//! Shows that pings are accepted by sending one.
//!
//! That the database answers shows less: a listener that accepts no connection, or writers that are stuck, would go unnoticed, and every
//! job would look as if it had not run. The ping is for a check that does not exist, and takes the whole way but for the row.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use uuid::Uuid;

/// Longest time of the way there and back.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of the answer that are read; its first line is enough.
const MAX_ANSWER_BYTES: u64 = 64;

/// Returns the name by which a process knows its own pings. It is random, so no client can pass for it.
pub(crate) fn agent() -> Arc<str> {
    format!("sexton-probe/{}", Uuid::new_v4()).into()
}

/// Sends a ping to this process, as `agent`.
///
/// # Errors
///
/// Why pings are not accepted.
pub(crate) async fn probe(bound: SocketAddr, agent: &str) -> Result<(), String> {
    let answer = timeout(PROBE_TIMEOUT, send(reachable(bound), agent)).await;
    let answer = answer.map_err(|_| "a ping was not answered in time".to_owned())?;
    let answer = answer.map_err(|error| format!("a ping could not be sent to {bound}: {error}"))?;
    match answer.split(' ').nth(1) {
        // There is no such check: the database was read.
        Some("404") => Ok(()),
        Some("503") => Err("the database does not record pings in time".to_owned()),
        _ => {
            Err(format!("a ping was answered with {:?}", answer.lines().next().unwrap_or_default()))
        }
    }
}

async fn send(address: SocketAddr, agent: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let id = Uuid::new_v4();
    let request = format!(
        "GET /ping/{id} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A socket that is bound to every address is reached at that of this host.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}
