//! Queries a program's health at the address in its log.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The text in a program's log before the address of its health server.
const ADDRESS_FOLLOWS: &str = "health is answered on http://";

/// The program answers from its memory.
const ANSWER_DEADLINE: Duration = Duration::from_secs(2);

/// Metrics are longest: some thousand series.
const ANSWER_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The address that a program has logged.
pub(super) fn address(log: &str) -> Option<&str> {
    let (_, after) = log.split_once(ADDRESS_FOLLOWS)?;
    let end = after.find(|c: char| c == '/' || c.is_whitespace())?;
    Some(&after[..end])
}

/// Requests `path` (`/readyz`, `/livez` or `/metrics`); returns whether the response's status is 200, and the response.
pub(super) async fn ask(address: &str, path: &str) -> io::Result<(bool, String)> {
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(ANSWER_MAX_BYTES).read_to_string(&mut answer).await?;
        Ok((answer.starts_with("HTTP/1.1 200 "), answer))
    };
    timeout(ANSWER_DEADLINE, asking).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_once_its_line_is_whole_enough() {
        let line = "INFO health is answered on http://127.0.0.1:40123/readyz health.address=…";
        assert_eq!(address(line), Some("127.0.0.1:40123"));
        assert_eq!(address("INFO health is answered on http://127.0.0.1:40"), None);
        assert_eq!(address("INFO started"), None);
    }
}
