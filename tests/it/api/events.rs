//! `/events` for programs: a token opens the stream, as a session does.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Fixture;

const PATH: &str = "/events?topics=actions";
/// For a change to reach the stream: long for a slow machine, and shorter than the stream's life.
const CHANGE_TIMEOUT: Duration = Duration::from_mins(1);

/// Reads a stream until it has brought so many changes; returns everything that it has brought.
async fn read_changes(stream: &mut TcpStream, received: &mut Vec<u8>, wanted: usize) -> String {
    let reading = async {
        loop {
            let text = String::from_utf8_lossy(received).into_owned();
            if text.matches("event: changed\n").count() >= wanted {
                return text;
            }
            let read = stream.read_buf(received).await.unwrap();
            assert!(read > 0, "the stream ended: {text}");
        }
    };
    timeout(CHANGE_TIMEOUT, reading).await.expect("a change is seen")
}

#[tokio::test]
async fn a_program_with_a_token_follows_changes() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let mut stream = TcpStream::connect(f.address).await.unwrap();
    let head = format!(
        "GET {PATH} HTTP/1.1\r\nHost: sexton.example.com\r\nAuthorization: Bearer {token}\r\nLast-Event-ID: 7\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let begun = read_changes(&mut stream, &mut received, 1).await;
    assert!(begun.starts_with("HTTP/1.1 200"), "{begun}");
    assert!(begun.contains("content-type: text/event-stream"), "{begun}");
    assert_eq!(begun.matches("event: changed\n").count(), 1, "nothing has changed yet: {begun}");
    f.console.trigger("shop.mail").await;
    let followed = read_changes(&mut stream, &mut received, 2).await;
    assert!(!followed.contains("\nid:"), "a sign has no id: {followed}");
}

#[tokio::test]
async fn a_stream_is_refused_without_a_token_and_without_a_topic() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let unknown = format!("Authorization: Bearer sxt_{}_{}", "0".repeat(16), "A".repeat(43));
    for header in ["X-Token: none", &unknown] {
        let answer = f.send_to("GET", PATH, &["Host: sexton.example.com", header], "").await;
        assert_eq!(answer.status, 303, "{header}: {}", answer.body);
        let place = answer.header("location").unwrap_or_default();
        assert!(place.starts_with("/log-in?next="), "{header}: {place}");
    }
    let authorization = format!("Authorization: Bearer {token}");
    for path in ["/events", "/events?topics=pools", "/events?topics=time&since=1"] {
        let headers = ["Host: sexton.example.com", &authorization];
        f.send_to("GET", path, &headers, "").await.expect(400);
    }
}
