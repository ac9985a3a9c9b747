//! A small HTTP server over real sockets, which answers as a test wants it to.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::in_time;

/// What the server does once it has read a request.
#[derive(Clone)]
pub(super) enum Act {
    /// Sends this and closes.
    Say(String),
    /// Sends this, and then the second text over and over until the other side has gone.
    Repeat(String, String, std::time::Duration),
    /// Says nothing until the other side has gone.
    Hang,
}

/// A request as it arrived: its head, and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: String,
}

impl Request {
    /// The value of a header; its name in any case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Something that the server saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Request(Request),
    /// The other side closed the connection.
    Gone,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
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
    pub(super) async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, seen) = mpsc::unbounded_channel();
        let acts = Arc::new(acts);
        let listening = tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let act = acts[number.min(acts.len() - 1)].clone();
                tokio::spawn(serve(stream, act, sender.clone()));
            }
        });
        Self { address, seen, listening: listening.abort_handle() }
    }

    /// A server that sends this head, with these lines after its first, and this body.
    pub(super) async fn answering(status: &str, headers: &str, body: &str) -> Self {
        Self::start(vec![Act::Say(answer(status, headers, body))]).await
    }

    pub(super) async fn next(&mut self) -> Seen {
        in_time(self.seen.recv()).await.unwrap()
    }

    /// The next request.
    pub(super) async fn request(&mut self) -> Request {
        match self.next().await {
            Seen::Request(request) => request,
            Seen::Gone => panic!("the client is gone"),
        }
    }

    /// Whether nothing more was seen so far.
    pub(super) fn saw_nothing_more(&mut self) -> bool {
        self.seen.try_recv().is_err()
    }
}

pub(super) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

async fn serve(mut stream: TcpStream, act: Act, seen: mpsc::UnboundedSender<Seen>) {
    let request = read(&mut stream).await;
    // The test may have ended.
    let _ = seen.send(Seen::Request(request));
    match act {
        Act::Say(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
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

async fn read(stream: &mut TcpStream) -> Request {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let request = Request { head: head.to_owned(), body: body.to_owned() };
            let length = request.header("content-length").map_or(0, |n| n.parse().unwrap());
            if body.len() >= length {
                return request;
            }
        }
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the request broke off: {text}");
        bytes.extend_from_slice(&buffer[..count]);
    }
}
