//! A connection of a browser that stays open.

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// When its first byte came.
    pub(super) began: Instant,
    pub(super) body: Vec<u8>,
}

/// A connection, with one request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    address: String,
    buffer: Vec<u8>,
    /// Whether an answer came over it.
    has_answered: bool,
}

impl Connection {
    pub(super) async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address: address.to_owned(), buffer: Vec::new(), has_answered: false })
    }

    /// Gets a page, and reads it to its end.
    pub(super) async fn get(&mut self, path: &str) -> Result<Answer> {
        self.ask(path, "Accept: text/html, application/json").await
    }

    /// Gets a page anew, as the script of an open one does.
    pub(super) async fn refresh(&mut self, path: &str) -> Result<Answer> {
        self.ask(path, "Accept: text/html\r\nSexton-Refresh: 1").await
    }

    async fn ask(&mut self, path: &str, headers: &str) -> Result<Answer> {
        // The server ends a connection that has become old; then a browser asks on another one.
        if let Err(error) = self.first_bytes(path, headers).await {
            ensure!(self.has_answered, error);
            *self = Self::open(&self.address).await?;
            self.first_bytes(path, headers).await?;
        }
        self.has_answered = true;
        let began = Instant::now();
        let (head, status, length) = loop {
            match head(&self.buffer)? {
                Some(head) => break head,
                None => self.read().await?,
            }
        };
        while self.buffer.len() < head + length {
            self.read().await?;
        }
        Ok(Answer { status, began, body: self.buffer.split_off(head) })
    }

    /// Sends a request, and waits for the first bytes of its answer.
    async fn first_bytes(&mut self, path: &str, headers: &str) -> Result<()> {
        self.send(path, headers).await?;
        self.buffer.clear();
        self.read().await
    }

    /// Sends a request whose answer has no end, and returns the connection once its head has come.
    pub(super) async fn follow(mut self, path: &str) -> Result<Stream> {
        self.send(path, "Accept: text/event-stream").await?;
        while !self.buffer.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            self.read().await?;
        }
        Ok(Stream(self))
    }

    async fn send(&mut self, path: &str, headers: &str) -> Result<()> {
        let host = &self.address;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n\r\n");
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    async fn read(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed a connection");
        }
        Ok(())
    }
}

/// A stream of signs.
#[derive(Debug)]
pub(super) struct Stream(Connection);

impl Stream {
    /// Waits for a sign that something has changed.
    pub(super) async fn changed(&mut self) -> Result<()> {
        const SIGN: &[u8] = b"event: changed";
        loop {
            if let Some(place) = self.0.buffer.windows(SIGN.len()).position(|it| it == SIGN) {
                self.0.buffer.drain(..place + SIGN.len());
                return Ok(());
            }
            self.0.read().await?;
        }
    }
}

/// The length of a head, its status, and the length of the body; `None`: it is not whole yet.
fn head(bytes: &[u8]) -> Result<Option<(usize, u16, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes[..end]);
    let status = text.split(' ').nth(1).context("a status")?.parse()?;
    let mut headers = text.lines().filter_map(|line| line.split_once(": "));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.with_context(|| format!("an answer without a length: {text}"))?.1;
    Ok(Some((end + 4, status, length.parse()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate";
        assert_eq!(head(answer).unwrap(), Some((38, 200, 4)));
        assert_eq!(head(&answer[..30]).unwrap(), None);
    }
}
