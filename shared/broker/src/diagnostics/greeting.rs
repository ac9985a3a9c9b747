//! Reads the broker's greeting, which comes before the login: it contains the version, which the client library does
//! not expose.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::liveness_probe::PROTOCOL_HEADER;

/// A broker's greeting has about half a kilobyte.
const MAX_GREETING_BYTES: usize = 8 * 1024;
/// Type, channel and payload size.
const HEADER_BYTES: usize = 7;

/// Returns the version; `None` if the broker does not send it within `limit`.
pub async fn server_version(endpoint: &Endpoint, limit: Duration) -> Option<String> {
    if endpoint.is_encrypted() {
        return None;
    }
    let greeting = timeout(limit, read_greeting(endpoint)).await.ok()?.ok()?;
    version_in(&greeting)
}

async fn read_greeting(endpoint: &Endpoint) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(endpoint.address()).await?;
    stream.write_all(PROTOCOL_HEADER).await?;
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).await?;
    let size = u32::from_be_bytes([header[3], header[4], header[5], header[6]]);
    let mut greeting = vec![0; (size as usize).min(MAX_GREETING_BYTES)];
    stream.read_exact(&mut greeting).await?;
    Ok(greeting)
}

/// Returns the text of the table's entry `server_version`.
fn version_in(greeting: &[u8]) -> Option<String> {
    const ENTRY: &[u8] = b"\x07versionS";
    let entry = greeting.windows(ENTRY.len()).position(|bytes| bytes == ENTRY)?;
    let (size, text) = greeting[entry + ENTRY.len()..].split_first_chunk::<4>()?;
    let text = text.get(..u32::from_be_bytes(*size) as usize)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brokers_version_is_read_from_its_greeting() {
        let greeting = b"..\x07productS\0\0\0\x08RabbitMQ\x07versionS\0\0\0\x054.0.5\x08platform";
        assert_eq!(version_in(greeting).as_deref(), Some("4.0.5"));
        assert_eq!(version_in(&greeting[..36]), None, "cut off in the middle");
        assert_eq!(version_in(b""), None);
    }
}
