//! Mails: the same one with every attempt, what the row does with each reply, and servers that hang.

use sexton_peers::smtp::{Script, Server};

use super::*;

/// The catalogue's entry for a mail to the server.
fn to(server: &Server) -> String {
    let port = server.port;
    format!(
        "email = {{ smtp = \"smtp://127.0.0.1:{port}\", from = \"sexton@example.org\", \
         to = \"team@example.org\", subject = \"due\", body = \"for {{{{ execution_key }}}}\", \
         timeout = \"1m\" }}"
    )
}

#[tokio::test]
async fn a_retried_mail_keeps_its_message_id() {
    let scripts = vec![
        Script::replying("", "421 busy"),
        Script::replying(".", "452 full"),
        Script::default(),
    ];
    let mut server = Server::start_in_turn(scripts).await;
    let scene = Scene::new(&[("remind", to(&server))], IMMEDIATE_RETRY, &[]).await;
    let id = scene.trigger("remind").await;
    assert!(!server.conversation().await.contains("MAIL"));
    let mails = [server.conversation().await, server.conversation().await];
    let [first, second] = mails.each_ref().map(|mail| {
        mail.lines().find(|line| line.starts_with("Message-ID: <")).expect("a Message-ID")
    });
    assert_eq!(first, second);
    assert!(first.ends_with("@example.org>"), "{first}");
    let shown = scene.ends(&id, "succeeded").await;
    let classes: Vec<_> =
        shown["attempts"].as_array().unwrap().iter().map(|one| &one["error_class"]).collect();
    assert_eq!(
        classes,
        ["smtp_421", "smtp_452", ""]
            .map(|class| match class {
                "" => Value::Null,
                class => class.into(),
            })
            .each_ref()
    );
    assert!(scene.is_stored("250 queued as 77").await);
    // Another execution's is another.
    scene.trigger("remind").await;
    assert!(!server.conversation().await.contains(first));
}

#[tokio::test]
async fn a_permanently_refused_mail_is_parked_at_once() {
    let server = Server::start(Script::replying("RCPT", "550 nobody of this name")).await;
    let scene = Scene::new(&[("remind", to(&server))], IMMEDIATE_RETRY, &[]).await;
    let (class, message) = scene.parked("remind").await;
    assert_eq!(class, "smtp_550");
    assert!(message.contains("nobody of this name"), "{message}");
}

#[tokio::test]
async fn a_mail_server_that_hangs_keeps_neither_the_slot_nor_a_connection() {
    let mut hangs = Server::start(Script::hanging("DATA")).await;
    let mut answers = Server::start(Script::default()).await;
    let hasty = to(&hangs).replace("1m", "1s");
    let tasks = [("hangs", hasty), ("answers", to(&answers))];
    let scene = Scene::new(&tasks, ONE_TIMEOUT, &[]).await;
    assert_eq!(scene.parked("hangs").await.0, "timeout");
    hangs.gone().await;
    let id = scene.trigger("answers").await;
    scene.ends(&id, "succeeded").await;
    assert!(answers.conversation().await.contains("for "));
}
