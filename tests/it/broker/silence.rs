//! A broker that takes connections and says nothing, as one does that is frozen.

use std::io::{ErrorKind, Read as _};
use std::time::Duration;

use sexton_broker::{Endpoint, Link, LinkSettings, Timeouts};
use sexton_tests::namespace::TestNamespace;
use tokio::net::{TcpListener, TcpStream};

use super::within;

/// For one attempt, here.
const CONNECT: Duration = Duration::from_millis(500);
/// Attempts that are looked at.
const ATTEMPTS: usize = 8;
/// The first one, which the client library cannot give up, and the last one. And one for luck: it may
/// be on its way to its end.
const OPEN: usize = 3;

fn is_open(stream: TcpStream) -> bool {
    // It does not block.
    let mut stream = stream.into_std().unwrap();
    let mut said = [0; 1024];
    loop {
        match stream.read(&mut said) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[tokio::test]
async fn a_link_leaves_no_attempts_behind_at_a_broker_that_does_not_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://{}", listener.local_addr().unwrap());
    let link = Link::start(LinkSettings {
        endpoint: Endpoint::parse(&url).unwrap(),
        timeouts: Timeouts { connect: CONNECT, ..Timeouts::default() },
        ..TestNamespace::new().settings()
    });
    let mut attempts = Vec::new();
    while attempts.len() < ATTEMPTS {
        let (attempt, _) = within("another attempt", listener.accept()).await.unwrap();
        attempts.push(attempt);
    }
    let open = attempts.into_iter().filter_map(|attempt| is_open(attempt).then_some(())).count();
    assert!(open <= OPEN, "{open} of {ATTEMPTS} attempts are still open");
    link.close().await;
}
