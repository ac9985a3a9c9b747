//! Probes whether a broker answers at all.
//!
//! A handshake that begins while the broker is frozen, or the network drops everything, is in vain: its first packets
//! are lost, and it waits for an answer until its limit. And the client library cannot abort it before the other side
//! closes it: its thread and its buffers stay. So while the broker is silent, this module probes every two seconds,
//! over separate connections that cost nothing. Earlier probes stay open meanwhile, because a broker may be slow.
//!
//! Any answer counts, even a refusal: the real connection then reports the reason.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

use crate::endpoint::Endpoint;

/// Pause between two probes, since the earlier ones may be lost.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// Time limit of one probe: the default of a whole connection. So about eight wait at a time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(15);

/// The first bytes of an AMQP 0-9-1 client. A broker that expects TLS answers with an alert or closes the connection,
/// which suffices.
pub(crate) const PROTOCOL_HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// Waits until the broker answers, without a limit. Cancel-safe.
pub(crate) async fn wait_until_responsive(endpoint: &Endpoint) {
    let mut probes = FuturesUnordered::new();
    let mut ticks = interval(PROBE_INTERVAL);
    loop {
        tokio::select! {
            _ = ticks.tick() => probes.push(timeout(PROBE_TIMEOUT, probe(endpoint))),
            // An error in time is an answer: a host has refused or reset, or the name does not resolve.
            Some(answer) = probes.next() => if answer.is_ok() {
                return;
            },
        }
    }
}

/// Returns with the first byte, the end, or an error.
async fn probe(endpoint: &Endpoint) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(endpoint.address()).await?;
    stream.write_all(PROTOCOL_HEADER).await?;
    let mut answer = [0];
    stream.read(&mut answer).await.map(drop)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A time before the second probe.
    const SOON: Duration = Duration::from_secs(1);

    async fn listener() -> (TcpListener, Endpoint) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("amqp://{}", listener.local_addr().unwrap());
        (listener, Endpoint::parse(&url).unwrap())
    }

    #[tokio::test]
    async fn silence_is_no_answer_and_everything_else_is_one() {
        let (silent, endpoint) = listener().await;
        assert!(timeout(SOON, wait_until_responsive(&endpoint)).await.is_err());

        let (mut first, _) = silent.accept().await.unwrap();
        let answering = async {
            // The test dropped the first probe above; the broker answers the second.
            let (mut second, _) = silent.accept().await.unwrap();
            second.write_all(b"x").await.unwrap();
            second
        };
        let (answer, _second) =
            tokio::join!(timeout(SOON, wait_until_responsive(&endpoint)), answering);
        assert!(answer.is_ok());
        let mut received = Vec::new();
        first.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, PROTOCOL_HEADER, "it sent nothing more, and hung up");

        drop(silent);
        let refused = timeout(SOON, wait_until_responsive(&endpoint)).await;
        assert!(refused.is_ok(), "a refusal is an answer");
    }
    /// A broker that is busy, or behind a slow network.
    #[tokio::test]
    async fn an_answer_that_takes_longer_than_until_the_next_question_counts() {
        let (slow, endpoint) = listener().await;
        let answering = async {
            let (mut first, _) = slow.accept().await.unwrap();
            let later = [slow.accept().await.unwrap(), slow.accept().await.unwrap()];
            first.write_all(b"x").await.unwrap();
            // Kept open, because a close would be an answer, too.
            (first, later)
        };
        let (answer, _open) =
            tokio::join!(timeout(PROBE_TIMEOUT, wait_until_responsive(&endpoint)), answering);
        assert!(answer.is_ok());
    }
}
