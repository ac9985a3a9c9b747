//! Tests of mails to a real server on a real socket, with limits and without a worker.

use chrono::DateTime;
use sexton_peers::in_time;
use sexton_peers::smtp::{Script, Server};

use super::*;

fn client(server: &Server) -> MailClient {
    let server = SmtpServer { host: "127.0.0.1".to_owned(), port: server.port, smtps: false };
    MailClient::new(server, TlsClient::default())
}

fn mail() -> Message {
    let text = MailText {
        to: "team@example.org".to_owned(),
        subject: "billing.charge fails".to_owned(),
        body: "It has failed three times.\n".to_owned(),
    };
    let from = "Sexton <sexton@example.org>".parse().unwrap();
    compose(&from, text, DateTime::UNIX_EPOCH, "incident 7").unwrap()
}

#[tokio::test]
async fn a_mail_is_handed_over_and_its_reply_returned() {
    let mut server = Server::start(Script::default()).await;
    let limit = Duration::from_mins(2);
    let accepted = in_time(client(&server).send(&mail(), None, limit)).await.unwrap();
    assert_eq!(accepted.reply(), "250 queued as 77");
    in_time(accepted.quit()).await;
    let conversation = server.conversation().await;
    assert!(conversation.contains("RCPT TO:<team@example.org>"), "{conversation}");
    assert!(conversation.contains("\nSubject: billing.charge fails\n"), "{conversation}");
    assert!(conversation.contains("QUIT"), "{conversation}");
}

#[tokio::test]
async fn a_refusal_says_by_its_code_whether_the_mail_may_be_sent_again() {
    for (reply, code, is_permanent) in [("450 greylisted", 450, false), ("550 nobody", 550, true)] {
        let server = Server::start(Script::replying("RCPT", reply)).await;
        let sent = in_time(client(&server).send(&mail(), None, Duration::from_mins(2))).await;
        let Err(MailError::Refused { code: actual_code, is_permanent: permanent, .. }) = sent
        else {
            panic!("{sent:?}")
        };
        assert_eq!((actual_code, permanent), (code, is_permanent), "{reply}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_left_at_the_limit() {
    let mut server = Server::start(Script::hanging("MAIL")).await;
    let limit = Duration::from_millis(300);
    let sent = in_time(client(&server).send(&mail(), None, limit)).await;
    assert_eq!(sent.unwrap_err(), MailError::TimedOut(limit));
    server.gone().await;
}

#[tokio::test]
async fn a_password_is_not_sent_without_encryption() {
    let mut server = Server::start(Script::default()).await;
    let login = Login { user: "me".to_owned(), password: "hunter2".to_owned() };
    let sent = in_time(client(&server).send(&mail(), Some(login), Duration::from_mins(2))).await;
    assert!(matches!(sent, Err(MailError::Unencrypted(_))), "{sent:?}");
    let conversation = server.conversation().await;
    assert!(
        !conversation.contains("AUTH PLAIN") && !conversation.contains("MAIL"),
        "{conversation}"
    );
}
