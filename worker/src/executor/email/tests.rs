//! Goal: a mail is sent whole, its outcome follows from the server's reply, and params cannot change what they
//! must not; with every behaviour of a server, the attempt ends in time and its connection with it.
//!
//! Method: a real SMTP server on a real socket for each test, which defines the replies.

use serde_json::{Value, json};
use sexton_peers::in_time;
use sexton_peers::smtp::{Script, Server};

use super::*;
use crate::executor::StopReason;
use crate::executor::test_support::{LONG_TIMEOUT, failure, long_lease, task};

fn to(server: &Server) -> EmailTask {
    EmailTask {
        server: SmtpServer { host: "127.0.0.1".to_owned(), port: server.port, smtps: false },
        from: "Sexton <sexton@example.org>".parse().unwrap(),
        to: "{{ params.to }}".to_owned(),
        subject: "{{ params.subject }} ({{ job }})".to_owned(),
        body: "Hello {{ params.name }},\nit is due.\n.\n".to_owned(),
        credentials: None,
        timeout: LONG_TIMEOUT,
    }
}

fn executor(spec: EmailTask) -> EmailExecutor {
    let variables = [("PASSWORD".into(), "hunter2".into())];
    let clock = || "1994-11-06T08:49:00Z".parse().unwrap();
    let host = EmailHost::new(
        SecretSource::new(variables.into_iter()),
        Arc::new(clock),
        TlsClient::default(),
    );
    EmailExecutor::new(Arc::new(host), spec)
}

fn reminder() -> Value {
    json!({"to": "team@example.org, Zoë <zoe@example.org>", "subject": "Fällig", "name": "team"})
}

async fn run(spec: EmailTask, attempt: u32, params: Value) -> TaskEnd {
    let (_supervisor, control) = long_lease();
    in_time(executor(spec).run(&task(attempt, params), control)).await
}

#[tokio::test]
async fn a_mail_is_handed_over_with_its_templates_filled_in() {
    let mut server = Server::start(Script::default()).await;
    let end = run(to(&server), 1, reminder()).await;
    assert_eq!(end.outcome, Outcome::Succeeded);
    assert_eq!(end.output.lines[0].text, "250 queued as 77");
    let conversation = server.conversation().await;
    assert!(conversation.contains("MAIL FROM:<sexton@example.org>"), "{conversation}");
    assert!(conversation.contains("RCPT TO:<team@example.org>"), "{conversation}");
    assert!(conversation.contains("RCPT TO:<zoe@example.org>"), "{conversation}");
    assert!(conversation.contains("\nFrom: Sexton <sexton@example.org>\n"), "{conversation}");
    assert!(conversation.contains("\nDate: Sun, 06 Nov 1994 08:49:00 +0000\n"), "{conversation}");
    assert!(conversation.contains("\nSubject: =?utf-8?"), "{conversation}");
    // A line of one full stop does not end the mail.
    assert!(conversation.contains("\nHello team,\nit is due.\n..\n"), "{conversation}");
}

#[tokio::test]
async fn every_attempt_sends_the_same_message_id() {
    let mut ids = Vec::new();
    for attempt in [1, 2] {
        let mut server = Server::start(Script::default()).await;
        run(to(&server), attempt, reminder()).await;
        let conversation = server.conversation().await;
        let id = conversation.lines().find(|line| line.starts_with("Message-ID: <")).unwrap();
        ids.push(id.to_owned());
    }
    assert_eq!(ids[0], ids[1]);
    assert!(ids[0].ends_with("@example.org>"), "{ids:?}");
}

#[tokio::test]
async fn replies_of_4xx_are_tried_again_and_replies_of_5xx_are_not() {
    for (verb, reply, class, retried) in [
        ("", "554 no service", "smtp_554", false),
        ("", "421 busy", "smtp_421", true),
        ("MAIL", "451 later", "smtp_451", true),
        ("RCPT", "550 nobody", "smtp_550", false),
        ("RCPT", "450 greylisted", "smtp_450", true),
        ("DATA", "554 no", "smtp_554", false),
        (".", "452 full", "smtp_452", true),
        (".", "552 too large", "smtp_552", false),
        ("MAIL", "nonsense", "smtp_broken", true),
    ] {
        // A refusal stays one even if the server ignores QUIT.
        let server = Server::start(Script::replying(verb, reply).deaf_to_quit()).await;
        let end = run(to(&server), 1, reminder()).await;
        let (actual_class, message, is_retried) = failure(&end);
        assert_eq!((actual_class, is_retried), (class, retried), "{verb}: {message}");
    }
}

#[tokio::test]
async fn no_param_begins_another_header() {
    let mut server = Server::start(Script::default()).await;
    for (name, value) in [
        ("subject", "Due\r\nBcc: everybody@example.org"),
        ("subject", "Due\nX: 1"),
        ("to", "a@example.org\r\nBcc: everybody@example.org"),
        ("to", "nobody"),
        ("to", "a@example.org b"),
    ] {
        let mut params = reminder();
        params[name] = json!(value);
        let end = run(to(&server), 1, params).await;
        assert_eq!((failure(&end).0, failure(&end).2), ("email_invalid", false), "{value:?}");
    }
    assert!(server.received_nothing_more());
    // The same text is harmless in a body.
    let mut params = reminder();
    params["name"] = json!("x\r\n.\r\nMAIL FROM:<evil@example.org>\r\n");
    assert_eq!(run(to(&server), 1, params).await.outcome, Outcome::Succeeded);
    let conversation = server.conversation().await;
    assert!(conversation.contains("\n..\n"), "{conversation}");
}

#[tokio::test]
async fn a_name_that_the_params_lack_fails_the_attempt_for_good() {
    let mut server = Server::start(Script::default()).await;
    let end = run(to(&server), 1, json!({"to": "a@example.org", "subject": "x"})).await;
    let (class, message, retried) = failure(&end);
    assert_eq!((class, retried), ("email_template", false));
    assert!(message.starts_with("`body` cannot be filled in"), "{message}");
    for body in
        ["{% for i in range(100000) %}{{ params }}{% endfor %}", "{{ params.name * 2000000 }}"]
    {
        let end = run(EmailTask { body: body.to_owned(), ..to(&server) }, 1, reminder()).await;
        assert!(!failure(&end).2, "{end:?}");
    }
    assert!(server.received_nothing_more());
}

#[tokio::test]
async fn a_password_is_not_sent_without_encryption() {
    let mut server = Server::start(Script::default()).await;
    let password = SecretRef::Env("PASSWORD".to_owned());
    let spec = EmailTask { credentials: Some(("me".to_owned(), password)), ..to(&server) };
    let end = run(spec, 1, reminder()).await;
    assert_eq!((failure(&end).0, failure(&end).2), ("smtp_unencrypted", false));
    let conversation = server.conversation().await;
    assert!(
        !conversation.contains("AUTH PLAIN") && !conversation.contains("MAIL"),
        "{conversation}"
    );
    let missing = SecretRef::Env("ABSENT".to_owned());
    let spec = EmailTask { credentials: Some(("me".to_owned(), missing)), ..to(&server) };
    let end = run(spec, 1, reminder()).await;
    assert_eq!((failure(&end).0, failure(&end).2), ("secret_missing", true));
}

#[tokio::test]
async fn a_server_that_hangs_is_left_at_the_timeout() {
    for verb in ["", "EHLO", "MAIL", "RCPT", "DATA", "."] {
        let mut server = Server::start(Script::hanging(verb)).await;
        let timeout = Duration::from_millis(300);
        let end = run(EmailTask { timeout, ..to(&server) }, 1, reminder()).await;
        assert_eq!(end.outcome, Outcome::TimedOut, "{verb:?}");
        server.gone().await;
    }
}

#[tokio::test]
async fn a_mail_that_was_accepted_is_sent_whatever_happens_until_the_server_says_goodbye() {
    let mut server = Server::start(Script::default().deaf_to_quit()).await;
    let executor = executor(to(&server));
    let (supervisor, control) = long_lease();
    let running = tokio::spawn(async move { executor.run(&task(1, reminder()), control).await });
    server.hears("QUIT").await;
    supervisor.stop(StopReason::Cancelled);
    assert_eq!(in_time(running).await.unwrap().outcome, Outcome::Succeeded);
    server.gone().await;
}

#[tokio::test]
async fn of_an_endless_reply_only_so_much_is_read() {
    let mut server = Server::start(Script::endless("EHLO")).await;
    let end = run(to(&server), 1, reminder()).await;
    let (class, message, retried) = failure(&end);
    assert_eq!((class, retried), ("smtp_broken", true), "{message}");
    server.gone().await;
}

#[tokio::test]
async fn whatever_stops_the_attempt_closes_its_connection() {
    for (reason, outcome) in
        [(StopReason::Cancelled, Outcome::Cancelled), (StopReason::LeaseLost, Outcome::LeaseLost)]
    {
        let mut server = Server::start(Script::hanging("MAIL")).await;
        let executor = executor(to(&server));
        let (supervisor, control) = long_lease();
        let running =
            tokio::spawn(async move { executor.run(&task(1, reminder()), control).await });
        server.hears("MAIL").await;
        supervisor.stop(reason);
        assert_eq!(in_time(running).await.unwrap().outcome, outcome);
        server.gone().await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_speaks_no_tls_is_tried_again() {
    let server = Server::start(Script::default()).await;
    let mut spec = to(&server);
    spec.server.smtps = true;
    let end = run(spec, 1, reminder()).await;
    assert_eq!((failure(&end).0, failure(&end).2), ("smtp_tls", true));
    let spec = to(&server);
    drop(server);
    tokio::task::yield_now().await;
    let end = run(spec, 1, reminder()).await;
    assert_eq!((failure(&end).0, failure(&end).2), ("smtp_unreachable", true));
}
