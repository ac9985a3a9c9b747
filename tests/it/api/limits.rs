//! Limits of what one caller or address may try.

use std::time::Duration;

use sexton_server::access::client::ProxySettings;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Fixture, LOCAL_HOST, log_in_body};

/// Less than the time limit of a slow form.
const PATIENCE: Duration = Duration::from_secs(20);

/// From an address that a trusted proxy names.
async fn log_in_from(f: &Fixture, address: &str, name: &str, password: &str) -> super::Answer {
    let forwarded = format!("X-Forwarded-For: {address}");
    let https = "X-Forwarded-Proto: https";
    let headers = [LOCAL_HOST, &forwarded, https, "Content-Type: application/json"];
    f.send("POST", "/session", &headers, &log_in_body(name, password)).await
}

#[tokio::test]
async fn passwords_are_tried_ten_times_and_the_person_gets_in_from_elsewhere() {
    let trusted = vec!["127.0.0.0/8".parse().unwrap()];
    let proxies = ProxySettings { trusted, ..ProxySettings::default() };
    let f = Fixture::with(|backend| backend.behind(proxies)).await;
    let password = f.account("ann", "viewer").await;
    let other = f.account("bob", "viewer").await;
    let mut guesses = 0;
    while log_in_from(&f, "2001:db8::1", "ann", "wrong password").await.status == 401 {
        guesses += 1;
        assert!(guesses < 50, "guesses are never limited");
    }
    assert!(guesses >= 10, "{guesses}");
    // A right one is not even compared, or the answer would show which it is.
    for address in ["2001:db8::1", "2001:db8::ffff:2"] {
        let refused = log_in_from(&f, address, "ann", &password).await;
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=90).contains(&wait), "{wait}");
        assert_eq!(refused.expect(429)["code"], "rate_limited", "{address}");
    }
    assert_eq!(log_in_from(&f, "2001:db8:0:1::1", "ann", &password).await.status, 204);
    assert_eq!(log_in_from(&f, "2001:db8::1", "bob", &other).await.status, 204);
    // Right passwords are not counted.
    for _ in 0..15 {
        assert_eq!(log_in_from(&f, "203.0.113.7", "bob", &other).await.status, 204);
    }
}

#[tokio::test]
async fn unknown_tokens_are_answered_with_a_wait_in_the_end_and_right_ones_never() {
    let f = Fixture::new().await;
    let token = f.token("deploy", "viewer").await;
    let mut refused = 0;
    let last = loop {
        let answer = f.get("sxt_wrong", "/me").await;
        if answer.status != 401 {
            break answer;
        }
        refused += 1;
        assert!(refused < 200, "it is never limited");
    };
    assert!(refused >= 100, "{refused}");
    assert!(last.header("retry-after").is_some(), "{}", last.head);
    assert_eq!(last.expect(429)["code"], "rate_limited");
    f.get(&token, "/me").await.expect(200);
}

#[tokio::test]
async fn one_caller_s_requests_are_limited_and_the_others_go_on() {
    let f = Fixture::with(|backend| backend.with_requests_per_minute(1)).await;
    let (busy, other) = (f.token("busy", "viewer").await, f.token("other", "viewer").await);
    let mut answered = 0;
    let last = loop {
        let answer = f.get(&busy, "/me").await;
        if answer.status != 200 {
            break answer;
        }
        answered += 1;
        assert!(answered < 200, "it is never limited");
    };
    assert!(answered >= 100, "{answered}");
    assert!(last.header("retry-after").is_some(), "{}", last.head);
    let problem = last.expect(429);
    assert_eq!(problem["code"], "rate_limited");
    assert!(problem["detail"].as_str().unwrap().contains("token busy"), "{problem}");
    f.get(&other, "/me").await.expect(200);
    let cookie = f.session("busy", "viewer").await;
    f.visit(&cookie, "GET", "/me", "").await.expect(200);
}

/// More than are answered at the same time, of both kinds.
const SLOW_FORMS: usize = 40;

#[tokio::test]
async fn the_slow_log_ins_of_strangers_hold_up_nobody_else() {
    let f = Fixture::new().await;
    let token = f.token("ci", "viewer").await;
    let mut slow = Vec::new();
    for path in ["/api/v1/session", "/log-in"] {
        let head = format!("POST {path} HTTP/1.1\r\n{LOCAL_HOST}\r\nContent-Length: 100\r\n\r\n{{");
        for _ in 0..SLOW_FORMS {
            let mut stream = TcpStream::connect(f.address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            slow.push(stream);
        }
    }
    timeout(PATIENCE, f.get(&token, "/me")).await.unwrap().expect(200);
    let authorization = format!("Authorization: Bearer {token}");
    let headers = [LOCAL_HOST, &authorization];
    let page = f.send_to("GET", "/failed", &headers, "");
    timeout(PATIENCE, page).await.unwrap().expect(200);
    // A long form of a stranger is refused before it is read.
    let long = "x".repeat(20_000);
    let json = "Content-Type: application/json";
    f.send("POST", "/session", &[LOCAL_HOST, json], &long).await.expect(413);
}
