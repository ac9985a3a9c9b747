//! A network that misbehaves on command: a TCP proxy between a program and a real server.
//!
//! The server stays as it is and the program is not changed; only the bytes between them are lost,
//! late or cut off. A change of behaviour holds at once, for the connections that are open and for
//! new ones.
//!
//! # What it does not do
//!
//! It does not repair what it broke: a connection that has lost bytes stays silent until one side
//! gives it up, whatever the test requests later. It does not read protocols: a pattern that is to be
//! found must go over the wire in plain text, so without TLS.

mod counter;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use counter::{Counter, Listener};

/// Connections at a time; more wait in the system's queue.
const MAX_CONNECTIONS: usize = 256;
/// Bytes that are read, and delayed, at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// A proxy on a free port of this host. Dropping it closes its connections.
#[derive(Debug)]
pub struct Proxy {
    server: String,
    address: SocketAddr,
    mode: watch::Sender<Mode>,
    matched: Counter,
    acceptor: JoinHandle<()>,
}

#[derive(Clone, Debug)]
enum Mode {
    Pass,
    Cut,
    BlackHole,
    Delay(Duration),
    /// `left`: on how many connections more.
    Swallow {
        pattern: Arc<[u8]>,
        left: Arc<AtomicUsize>,
    },
    /// `lost`: how many pieces.
    Lose {
        pattern: Arc<[u8]>,
        lost: Arc<AtomicUsize>,
    },
}

impl Proxy {
    /// Stands before the server at `server` (`host:port`) and passes everything on.
    pub async fn to(server: &str) -> Result<Self> {
        Self::counting(server, b"").await
    }

    /// Stands before the server of `url`, which must name its port.
    pub async fn before(url: &str) -> Result<Self> {
        let (_, server, _) = authority(url).context("a URL without a host")?;
        Self::to(server).await
    }

    /// As [`Self::before`], and counts how often the server says `pattern`; see [`Self::matches`].
    pub async fn before_counting(url: &str, pattern: &[u8]) -> Result<Self> {
        let (_, server, _) = authority(url).context("a URL without a host")?;
        Self::counting(server, pattern).await
    }

    async fn counting(server: &str, pattern: &[u8]) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (mode, behaviour) = watch::channel(Mode::Pass);
        let matched = Counter::of(pattern);
        let acceptor =
            tokio::spawn(accept(listener, server.to_owned(), behaviour, matched.clone()));
        Ok(Self { server: server.to_owned(), address, mode, matched, acceptor })
    }

    /// How often the server has sent the pattern so far, forwarded or not.
    pub fn matches(&self) -> usize {
        self.matched.count()
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// `url`, which must be one of its server, by way of the proxy.
    ///
    /// # Panics
    ///
    /// If it names another server: a test that goes past its proxy tests nothing.
    pub fn url(&self, url: &str) -> String {
        // Unwrap safety: as documented.
        let (before, server, after) = authority(url).expect("a URL with a host");
        assert_eq!(server, self.server, "the proxy stands before another server");
        format!("{before}{}{after}", self.address)
    }

    /// Passes on what comes.
    pub fn pass(&self) {
        self.mode.send_replace(Mode::Pass);
    }

    /// Resets every connection, and new ones as soon as they are there.
    pub fn cut(&self) {
        self.mode.send_replace(Mode::Cut);
    }

    /// Takes everything from both sides and gives nothing to either; nothing is closed.
    pub fn black_hole(&self) {
        self.mode.send_replace(Mode::BlackHole);
    }

    /// Passes on each piece `time` later, in each direction.
    pub fn delay(&self, time: Duration) {
        self.mode.send_replace(Mode::Delay(time));
    }

    /// Passes on what comes, but no piece of a client's that holds `pattern`: the connection lives on,
    /// and the server does not know of the request. The client must send it by itself.
    pub fn lose_requests_matching(&self, pattern: &[u8]) -> Losing {
        let lost = Arc::new(AtomicUsize::new(0));
        let losing = Losing(Arc::clone(&lost));
        self.mode.send_replace(Mode::Lose { pattern: pattern.into(), lost });
        losing
    }

    /// Passes on what comes; but once a client has sent `pattern`, the server gets it and its
    /// answers on that connection are lost, which stays open. So for the first `connections` that
    /// send it.
    pub fn swallow_answers_matching(&self, pattern: &[u8], connections: usize) -> Swallowing {
        let left = Arc::new(AtomicUsize::new(connections));
        let swallowing = Swallowing(Arc::clone(&left));
        self.mode.send_replace(Mode::Swallow { pattern: pattern.into(), left });
        swallowing
    }
}

/// What a proxy is about to swallow.
#[derive(Clone, Debug)]
pub struct Swallowing(Arc<AtomicUsize>);

impl Swallowing {
    /// Whether every connection that was to lose its answers has lost them.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

/// What a proxy loses.
#[derive(Clone, Debug)]
pub struct Losing(Arc<AtomicUsize>);

impl Losing {
    /// How many pieces it has lost.
    pub fn pieces(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// A URL's parts: up to the host, `host:port`, the rest.
fn authority(url: &str) -> Option<(&str, &str, &str)> {
    let begin = url.find("://")? + 3;
    let end = url[begin..].find(['/', '?']).map_or(url.len(), |end| begin + end);
    let host = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    (host < end).then(|| (&url[..host], &url[host..end], &url[end..]))
}

async fn accept(
    listener: TcpListener,
    server: String,
    mode: watch::Receiver<Mode>,
    matched: Counter,
) {
    // Owned here, so that the connections end with the acceptor.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                // Out of descriptors, which fails the test in many other places.
                let Ok((client, _)) = accepted else { return };
                connections.spawn(connect(client, server.clone(), mode.clone(), matched.listen()));
            }
        }
    }
}

/// One connection's life. A server that cannot be reached is a reset to the client.
async fn connect(
    mut client: TcpStream,
    server: String,
    mode: watch::Receiver<Mode>,
    listener: Listener,
) {
    let server = if matches!(*mode.borrow(), Mode::Cut) {
        None
    } else {
        TcpStream::connect(&*server).await.ok()
    };
    let Some(mut server) = server else {
        let _ = client.set_zero_linger();
        return;
    };
    // Small answers must not wait for more: the proxy is to be invisible.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let cut = converse(&mut client, &mut server, mode, listener).await;
    if cut {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// Passes on until both sides are done; whether the connection is to be reset.
async fn converse(
    client: &mut TcpStream,
    server: &mut TcpStream,
    mode: watch::Receiver<Mode>,
    listener: Listener,
) -> bool {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let losses = Losses::default();
    let up = Pump { from: from_client, to: to_server, mode: mode.clone(), losses: &losses };
    let down = Pump { from: from_server, to: to_client, mode: mode.clone(), losses: &losses };
    tokio::select! {
        ended = async { tokio::try_join!(up.up(), down.down(listener)) } => ended.is_err(),
        () = is_cut(mode) => true,
    }
}

async fn is_cut(mut mode: watch::Receiver<Mode>) {
    if mode.wait_for(|mode| matches!(mode, Mode::Cut)).await.is_err() {
        // The proxy is gone, and this connection will be at once.
        std::future::pending::<()>().await;
    }
}

/// What a connection has lost for good.
#[derive(Debug, Default)]
struct Losses {
    /// Both directions.
    all: AtomicBool,
    /// What the server says.
    answers: AtomicBool,
}

impl Losses {
    /// Whether the client hears nothing any more, not even the end.
    fn mute(&self) -> bool {
        self.all.load(Ordering::SeqCst) || self.answers.load(Ordering::SeqCst)
    }
}

/// One direction of a connection.
struct Pump<'a> {
    from: ReadHalf<'a>,
    to: WriteHalf<'a>,
    mode: watch::Receiver<Mode>,
    losses: &'a Losses,
}

impl Pump<'_> {
    async fn up(mut self) -> io::Result<()> {
        let mut seen = Vec::new();
        let mut piece = vec![0; CHUNK_BYTES];
        loop {
            let count = self.from.read(&mut piece).await?;
            let mode = self.mode.borrow().clone();
            if let Mode::Swallow { pattern, left } = &mode {
                seen.extend_from_slice(&piece[..count]);
                // Before it is passed on, so that no answer is faster.
                if contains(&seen, pattern) && !self.losses.mute() && take_one(left) {
                    self.losses.answers.store(true, Ordering::SeqCst);
                }
                // What may still be the beginning of it.
                let tail_bytes = seen.len().min(pattern.len().saturating_sub(1));
                seen.drain(..seen.len() - tail_bytes);
            }
            if let Mode::Lose { pattern, lost } = &mode
                && contains(&piece[..count], pattern)
            {
                lost.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            self.pass_on(&piece[..count], &mode, false).await?;
            if count == 0 {
                let left_alone = self.losses.mute();
                return if left_alone {
                    Err(io::ErrorKind::ConnectionAborted.into())
                } else {
                    Ok(())
                };
            }
        }
    }

    async fn down(mut self, mut listener: Listener) -> io::Result<()> {
        let mut piece = vec![0; CHUNK_BYTES];
        loop {
            let count = match self.from.read(&mut piece).await {
                Ok(count) => count,
                Err(error) if !self.losses.mute() => return Err(error),
                Err(_) => 0,
            };
            listener.hear(&piece[..count]);
            let mode = self.mode.borrow().clone();
            let unheard = self.losses.answers.load(Ordering::SeqCst);
            self.pass_on(&piece[..count], &mode, unheard).await?;
            if count == 0 {
                return if self.losses.mute() { std::future::pending().await } else { Ok(()) };
            }
        }
    }

    /// Passes a piece on, or the end, which is an empty one.
    async fn pass_on(&mut self, piece: &[u8], mode: &Mode, unheard: bool) -> io::Result<()> {
        if matches!(mode, Mode::BlackHole) {
            self.losses.all.store(true, Ordering::SeqCst);
        }
        if unheard || self.losses.all.load(Ordering::SeqCst) {
            return Ok(());
        }
        if let Mode::Delay(time) = mode {
            tokio::time::sleep(*time).await;
        }
        if piece.is_empty() { self.to.shutdown().await } else { self.to.write_all(piece).await }
    }
}

fn take_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

fn contains(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes.windows(pattern.len().max(1)).any(|window| window == pattern)
}

#[cfg(test)]
mod tests;
