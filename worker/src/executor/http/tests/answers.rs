//! Tests of requests and of the meaning of each response.

use std::fs;

use sexton_outbound::http::header::AUTHORIZATION;
use sexton_peers::http::Request;

use super::*;

#[tokio::test]
async fn a_task_is_posted_with_its_params_its_key_and_its_trace() {
    let mut server = Server::answering("201 Created", "", "{\"charged\": true}\n").await;
    let mut spec = to(&server);
    let token = Value::Secret(SecretRef::Env("TOKEN".to_owned()));
    spec.headers.push((AUTHORIZATION, token));
    let end = run(spec).await;
    assert_eq!(end.outcome, Outcome::Succeeded);
    assert_eq!(lines(&end, Stream::Stdout), ["{\"charged\": true}"]);
    assert_eq!(lines(&end, Stream::Stderr), ["201 Created"]);
    let request = server.request().await;
    assert!(request.head.starts_with("POST /charges?dry=1 HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.body, "{\"customer\":4891,\"name\":\"Zoë\"}");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("host"), Some(server.address.to_string().as_str()));
    assert_eq!(request.header("authorization"), Some("Bearer hunter2"));
    let key = request.header("idempotency-key");
    assert_eq!(key, Some("billing.charge:cron-2025-12-12T08:00:00Z"));
    let trace = request.header("traceparent").unwrap();
    assert!(trace.starts_with("00-00000000000000000000000000000007-"), "{trace}");
}

#[tokio::test]
async fn a_secret_that_the_server_repeats_is_masked() {
    let server = Server::answering("403 Forbidden", "", "not with Bearer hunter2").await;
    let mut spec = to(&server);
    spec.headers.push((AUTHORIZATION, Value::Secret(SecretRef::Env("TOKEN".to_owned()))));
    let (_supervisor, control) = long_lease();
    let recorder = control.output().clone();
    let end = in_time(executor(spec).run(&task(1), control)).await;
    assert_eq!(lines(&end, Stream::Stdout), ["not with ***"]);
    // The recorder of the end masks the message.
    assert_eq!(recorder.masked(failure(&end).1), "the answer was 403 Forbidden: not with ***");
    assert_eq!(recorder.masked("no such token: hunter2"), "no such token: ***");
}

#[tokio::test]
async fn the_beginning_of_a_body_is_not_cut_within_a_character() {
    let body = "x".repeat(EXCERPT_MAX_BYTES - 1) + "ä";
    let end = run(to(&Server::answering("403 Forbidden", "", &body).await)).await;
    assert!(failure(&end).1.ends_with("xxx"), "{}", failure(&end).1);
}

#[tokio::test]
async fn a_body_that_looks_like_progress_is_kept_as_any_other() {
    let server = Server::answering("200 OK", "", "::progress 40\nfine\n").await;
    let end = run(to(&server)).await;
    assert_eq!(lines(&end, Stream::Stdout), ["::progress 40", "fine"]);
}

#[tokio::test]
async fn a_request_in_clear_needs_no_roots() {
    let server = Server::answering("200 OK", "", "").await;
    let tls = TlsClient::default();
    let executor = executor_trusting(tls.clone(), to(&server));
    let (_supervisor, control) = long_lease();
    assert_eq!(in_time(executor.run(&task(1), control)).await.outcome, Outcome::Succeeded);
    assert!(!tls.is_loaded());
}

#[tokio::test]
async fn a_method_without_a_body_sends_no_params() {
    let mut server = Server::answering("204 No Content", "", "").await;
    let spec = HttpTask { method: Method::GET, ..to(&server) };
    assert_eq!(run(spec).await.outcome, Outcome::Succeeded);
    let request = server.request().await;
    assert!(request.head.starts_with("GET /charges"), "{}", request.head);
    assert_eq!((request.body.as_str(), request.header("content-type")), ("", None));
}

#[tokio::test]
async fn every_attempt_has_the_same_key_in_another_span_of_the_same_trace() {
    let acts = ["503 Service Unavailable", "200 OK"].map(|s| Act::answer(s, "", ""));
    let mut server = Server::start(acts.to_vec()).await;
    let first = run_task(to(&server), &task(1)).await;
    assert_eq!(failure(&first), ("http_503", "the answer was 503 Service Unavailable", true));
    assert_eq!(run_task(to(&server), &task(2)).await.outcome, Outcome::Succeeded);
    let (first, second) = (server.request().await, server.request().await);
    assert_eq!(first.header("idempotency-key"), second.header("idempotency-key"));
    let trace = |request: &Request| request.header("traceparent").unwrap().to_owned();
    assert_eq!(trace(&first)[..36], trace(&second)[..36]);
    assert_ne!(trace(&first), trace(&second));
}

#[tokio::test]
async fn each_family_of_statuses_has_its_meaning() {
    for (status, class, retried) in [
        ("400 Bad Request", "http_400", false),
        ("404 Not Found", "http_404", false),
        ("408 Request Timeout", "http_408", true),
        ("425 Too Early", "http_425", true),
        ("429 Too Many Requests", "http_429", true),
        ("500 Internal Server Error", "http_500", true),
        ("599 Odd", "http_599", true),
        ("700 Odder", "http_700", false),
    ] {
        let server = Server::answering(status, "", "\n  the reason\nand more").await;
        let end = run(to(&server)).await;
        let (expected_class, message, expected_retried) = failure(&end);
        assert_eq!((expected_class, expected_retried), (class, retried), "{status}");
        assert!(message.ends_with(": the reason"), "{message}");
        assert_eq!(lines(&end, Stream::Stdout), ["", "  the reason", "and more"]);
    }
}

#[tokio::test]
async fn both_forms_of_retry_after_become_the_wish_for_the_wait() {
    for (header, wait) in [
        ("Retry-After: 120\r\n", Some(120)),
        ("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", Some(37)),
        ("Retry-After: 1000000\r\n", Some(RETRY_AFTER_MAX.as_secs())),
        ("Retry-After: later\r\n", None),
        ("", None),
    ] {
        let server = Server::answering("429 Too Many Requests", header, "").await;
        let outcome = run(to(&server)).await.outcome;
        let Outcome::Retry { after, .. } = outcome else { panic!("{header}: {outcome:?}") };
        assert_eq!(after.map(|after| after.as_secs()), wait, "{header}");
    }
}

#[tokio::test]
async fn a_redirect_is_told_and_not_followed() {
    let mut elsewhere = Server::answering("200 OK", "", "").await;
    let location = format!("Location: http://{}/\r\n", elsewhere.address);
    let server = Server::answering("307 Temporary Redirect", &location, "").await;
    let end = run(to(&server)).await;
    let (class, message, retried) = failure(&end);
    assert_eq!((class, retried), ("http_307", false));
    assert!(message.contains(&elsewhere.address.to_string()), "{message}");
    assert!(elsewhere.saw_nothing_more());
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_before_anything_is_sent() {
    let mut server = Server::answering("200 OK", "", "").await;
    let port = server.address.port();
    // As the address itself, as a name, and in the form of another family.
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let url = Url::parse(&format!("http://{host}:{port}/")).unwrap();
        let end = run(HttpTask { url: url.clone(), allowed: false, ..to(&server) }).await;
        let (class, message, retried) = failure(&end);
        assert_eq!((class, retried), ("address_refused", false), "{host}");
        assert!(message.contains("name "), "{message}");
        assert!(server.saw_nothing_more(), "{host}");
        let allowed = run(HttpTask { url, ..to(&server) }).await;
        assert_eq!(allowed.outcome, Outcome::Succeeded, "{host}");
        server.request().await;
    }
}

#[tokio::test]
async fn a_secret_is_read_at_each_attempt_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let mut server = Server::answering("200 OK", "", "").await;
    let file = Value::Secret(SecretRef::File(path.clone()));
    let spec = HttpTask { headers: vec![(AUTHORIZATION, file)], ..to(&server) };
    let end = run(spec.clone()).await;
    let (class, message, retried) = failure(&end);
    assert_eq!((class, retried), ("secret_missing", true));
    assert!(message.contains(&path.display().to_string()), "{message}");
    for token in ["one", "two"] {
        fs::write(&path, format!("{token}\n")).unwrap();
        assert_eq!(run(spec.clone()).await.outcome, Outcome::Succeeded);
        assert_eq!(server.request().await.header("authorization"), Some(token));
    }
    let split = Value::Secret(SecretRef::Env("LINES".to_owned()));
    let end = run(HttpTask { headers: vec![(AUTHORIZATION, split)], ..to(&server) }).await;
    assert_eq!((failure(&end).0, failure(&end).2), ("secret_unusable", true));
    assert!(server.saw_nothing_more());
}
