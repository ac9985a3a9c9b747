//! Tests of servers that never finish, and of attempts that must.

use sexton_peers::http::Seen;

use super::*;
use crate::executor::{HostInstant, StopReason, TaskSupervisor};

fn endless(head: &str, pause: Duration) -> Act {
    Act::Repeat(head.to_owned(), "x".repeat(1000), pause)
}

#[tokio::test]
async fn of_an_endless_body_no_more_than_the_limit_is_read() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let act = Act::Repeat(head.to_owned(), chunk, Duration::ZERO);
    let mut server = Server::start(vec![act]).await;
    let end = run(HttpTask { max_response: 10_500, ..to(&server) }).await;
    assert_eq!(end.outcome, Outcome::Succeeded);
    assert_eq!(lines(&end, Stream::Stdout).concat().len(), 10_500);
    let notes = lines(&end, Stream::Stderr);
    assert_eq!(notes[1], "the answer is longer than 10500 bytes; the rest was not read");
    server.request().await;
    assert_eq!(server.next().await, Seen::Gone);
}

#[tokio::test]
async fn a_body_of_just_the_limit_is_whole() {
    let server = Server::answering("200 OK", "", "12345").await;
    let end = run(HttpTask { max_response: 5, ..to(&server) }).await;
    assert_eq!(lines(&end, Stream::Stdout), ["12345"]);
    assert_eq!(lines(&end, Stream::Stderr), ["200 OK"]);
    let end = run(HttpTask { max_response: 0, ..to(&server) }).await;
    assert_eq!(end.outcome, Outcome::Succeeded);
    assert_eq!(lines(&end, Stream::Stdout), [""; 0]);
}

#[tokio::test]
async fn a_server_that_drips_or_hangs_is_left_at_the_timeout() {
    let drip = Duration::from_millis(20);
    for act in [
        Act::Hang,
        // In the head, and in the body.
        Act::Repeat("HTTP/1.1 200 OK\r\n".to_owned(), "X-More: 1\r\n".to_owned(), drip),
        endless("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", drip),
    ] {
        let mut server = Server::start(vec![act]).await;
        let timeout = Duration::from_millis(300);
        let end = run(HttpTask { timeout, ..to(&server) }).await;
        assert_eq!(end.outcome, Outcome::TimedOut);
        // On a slow machine perhaps before the request was sent.
        server.gone().await;
    }
}

#[tokio::test]
async fn the_attempts_own_timeout_holds_if_it_is_shorter() {
    let server = Server::start(vec![Act::Hang]).await;
    let task = TaskRun { timeout: Duration::from_millis(100), ..task(1) };
    assert_eq!(run_task(to(&server), &task).await.outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn whatever_stops_the_attempt_closes_its_connection() {
    for (reason, outcome) in [
        (StopReason::Cancelled, Outcome::Cancelled),
        (StopReason::Interrupted, Outcome::Interrupted),
        (StopReason::LeaseLost, Outcome::LeaseLost),
    ] {
        let mut server = Server::start(vec![Act::Hang]).await;
        let executor = executor(to(&server));
        let (supervisor, control) = long_lease();
        let running = tokio::spawn(async move { executor.run(&task(1), control).await });
        server.request().await;
        supervisor.stop(reason);
        assert_eq!(in_time(running).await.unwrap().outcome, outcome);
        assert_eq!(server.next().await, Seen::Gone);
    }
}

#[tokio::test]
async fn a_lease_that_ends_and_an_attempt_that_is_dropped_close_the_connection_too() {
    let mut server = Server::start(vec![Act::Hang]).await;
    let executor = Arc::new(executor(to(&server)));
    let (_supervisor, control) = TaskSupervisor::new(HostInstant::now() + Duration::from_secs(1));
    let end = in_time(executor.run(&task(1), control)).await;
    assert_eq!(end.outcome, Outcome::LeaseLost);
    server.gone().await;

    let (_supervisor, control) = long_lease();
    let running = tokio::spawn(async move { executor.run(&task(2), control).await });
    server.request().await;
    running.abort();
    assert_eq!(server.next().await, Seen::Gone);
}

#[tokio::test]
async fn what_is_no_answer_is_tried_again() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1_000_000));
    for (response, part) in [
        ("", "no answer"),
        ("SSH-2.0-OpenSSH\r\n", "no answer"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "the answer broke off"),
        (long.as_str(), "no answer"),
    ] {
        let server = Server::start(vec![Act::Say(response.to_owned())]).await;
        let end = run(to(&server)).await;
        let (class, message, retried) = failure(&end);
        assert_eq!((class, retried), ("http_broken", true), "{message}");
        assert!(message.starts_with(part), "{message}");
    }
    // Nothing listens on a port that was just closed.
    let server = Server::start(vec![Act::Hang]).await;
    let spec = to(&server);
    drop(server);
    tokio::task::yield_now().await;
    let end = run(spec).await;
    assert_eq!((failure(&end).0, failure(&end).2), ("http_unreachable", true));
}
