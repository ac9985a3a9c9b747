//! A small HTTP server, which responds as a test demands.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use crate::{Stream, in_time, tls};

/// What the server does once it has read a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Sends this and closes.
    Say(String),
    /// Sends this, and then the second text over and over, with pauses, until the other side has gone.
    Repeat(String, String, Duration),
    /// Sends nothing until the other side has gone.
    Hang,
}

impl Act {
    /// Sends an answer with this status, these lines after it (each with its line end), and this body.
    pub fn answer(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Say(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"))
    }
}

/// A request as it arrived: its head, and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The request line and the headers.
    pub head: String,
    /// What follows them.
    pub body: String,
}

impl Request {
    /// The value of a header; its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// An event at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A whole request.
    Request(Request),
    /// The other side closed the connection.
    Gone,
}

/// A server on a port of this host; it stops when this value is dropped.
#[derive(Debug)]
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
    listening: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Server {
    /// Serves the acts in turn, one for each connection, and the last of them from then on.
    pub async fn start(acts: Vec<Act>) -> Self {
        Self::listen(acts, None).await
    }

    /// As [`start`](Self::start), over TLS.
    pub async fn start_encrypted(acts: Vec<Act>) -> Self {
        Self::listen(acts, Some(tls::acceptor(&[]))).await
    }

    /// A server that sends this response; see [`Act::answer`].
    pub async fn answering(status: &str, headers: &str, body: &str) -> Self {
        Self::start(vec![Act::answer(status, headers, body)]).await
    }

    async fn listen(acts: Vec<Act>, tls: Option<TlsAcceptor>) -> Self {
        // An encrypted server must also be reachable at an address that its certificate does not name.
        let host = if tls.is_some() { [0, 0, 0, 0] } else { [127, 0, 0, 1] };
        let listener = TcpListener::bind(SocketAddr::from((host, 0))).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, seen) = mpsc::unbounded_channel();
        let acts = Arc::new(acts);
        let listening = tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let act = acts[number.min(acts.len() - 1)].clone();
                let (tls, sender) = (tls.clone(), sender.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, act, sender).await,
                        // A client that does not trust the certificate closes during the handshake.
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, act, sender).await,
                            Err(_) => drop(sender.send(Seen::Gone)),
                        },
                    }
                });
            }
        });
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Self { address, seen, listening: listening.abort_handle() }
    }

    /// The next event.
    ///
    /// # Panics
    ///
    /// As [`in_time`].
    pub async fn next(&mut self) -> Seen {
        in_time(self.seen.recv()).await.unwrap()
    }

    /// The next request.
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next), and if the other side goes instead.
    pub async fn request(&mut self) -> Request {
        match self.next().await {
            Seen::Request(request) => request,
            Seen::Gone => panic!("the client is gone"),
        }
    }

    /// Waits until the other side has closed a connection, whatever it has sent before.
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    pub async fn gone(&mut self) {
        while self.next().await != Seen::Gone {}
    }

    /// Whether there were no further events so far.
    pub fn saw_nothing_more(&mut self) -> bool {
        self.seen.try_recv().is_err()
    }
}

async fn serve(mut stream: impl Stream, act: Act, seen: mpsc::UnboundedSender<Seen>) {
    let Some(request) = read(&mut stream).await else {
        let _ = seen.send(Seen::Gone);
        return;
    };
    // The test may have ended.
    let _ = seen.send(Seen::Request(request));
    match act {
        Act::Say(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Act::Repeat(first, again, pause) => {
            let mut sent = stream.write_all(first.as_bytes()).await;
            while sent.is_ok() {
                tokio::time::sleep(pause).await;
                sent = stream.write_all(again.as_bytes()).await;
            }
            let _ = seen.send(Seen::Gone);
        }
        Act::Hang => {
            let mut byte = [0];
            while matches!(stream.read(&mut byte).await, Ok(1..)) {}
            let _ = seen.send(Seen::Gone);
        }
    }
}

/// A whole request; `None` if the other side goes before.
async fn read(stream: &mut impl Stream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let request = Request { head: head.to_owned(), body: body.to_owned() };
            let length = request.header("content-length").map_or(0, |n| n.parse().unwrap());
            if body.len() >= length {
                return Some(request);
            }
        }
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}
