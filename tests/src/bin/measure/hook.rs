//! A webhook that accepts everything, and counts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Bytes of a message; a longer one is cut.
const MAX_MESSAGE_BYTES: usize = 1_000_000;

#[derive(Debug, Default)]
struct Counts {
    messages: AtomicU64,
    digested: AtomicU64,
}

/// A webhook; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Hook {
    address: SocketAddr,
    counts: Arc<Counts>,
    listening: AbortHandle,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Hook {
    /// Listens on a port of this host.
    pub(super) async fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let counted = Arc::clone(&counts);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&counted)));
            }
        });
        Ok(Self { address, counts, listening: listening.abort_handle() })
    }

    /// An alerts file with this channel, for incidents of jobs with this label.
    pub(super) fn alerts(&self, label: &str) -> String {
        let url = format!("http://{}/", self.address);
        format!(
            "[[channel]]\nname = \"hook\"\nwebhook = {{ url = \"{url}\", allow_private = true }}\n\
             [[route]]\nlabels = {{ part = \"{label}\" }}\nchannels = [\"hook\"]\n"
        )
    }

    /// Messages so far.
    pub(super) fn messages(&self) -> u64 {
        self.counts.messages.load(Ordering::Relaxed)
    }

    /// Incidents in digests so far.
    pub(super) fn digested(&self) -> u64 {
        self.counts.digested.load(Ordering::Relaxed)
    }
}

/// Reads one message and answers it.
async fn serve(mut stream: TcpStream, counts: Arc<Counts>) -> Result<()> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8_192];
    while bytes.len() < MAX_MESSAGE_BYTES {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut headers = head.lines().filter_map(|line| line.split_once(": "));
            let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                let message: Value = serde_json::from_str(body).unwrap_or_default();
                counts.messages.fetch_add(1, Ordering::Relaxed);
                let digested = message["data"]["count"].as_u64().unwrap_or(0);
                counts.digested.fetch_add(digested, Ordering::Relaxed);
                break;
            }
        }
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            read => bytes.extend_from_slice(&buffer[..read]),
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
    Ok(stream.shutdown().await?)
}
