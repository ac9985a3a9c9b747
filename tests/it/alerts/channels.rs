//! The commands that list and test channels, and list and requeue notifications.

use sexton_peers::http::Server;

use super::{Fixture, at};
use crate::cli::Ended;

impl Fixture {
    async fn test(&self, more: &[&str]) -> Ended {
        self.command(&[&["channels", "test", "ops"], more].concat()).await
    }

    async fn open_webhook(&self, server: &Server) {
        let url = format!("http://{}/", server.address);
        let config = serde_json::json!({"url": url, "allow_private": true});
        self.channel("ops", "webhook", config).await;
    }
}

#[tokio::test]
async fn a_test_is_sent_at_once_and_its_exit_status_says_whether_it_was_accepted() {
    let f = Fixture::new().await;
    let mut server = Server::answering("200 OK", "", "").await;
    f.open_webhook(&server).await;
    let text = f.test(&[]).await.expect(0).text();
    assert!(text.contains("ops accepted a test."), "{text}");
    assert!(server.request().await.body.contains("\"type\":\"channel.test\""));
    let refusing = Server::answering("410 Gone", "", "").await;
    f.sql("DELETE FROM sexton.channels").await;
    f.open_webhook(&refusing).await;
    let text = format!("{:?}", f.test(&[]).await.expect(1));
    assert!(text.contains("410 Gone"), "{text}");
    f.command(&["channels", "test", "absent"]).await.expect(3);
    assert_eq!(f.number("SELECT count(*) FROM sexton.notifications").await, 0);
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.operator_actions WHERE action = 'test_channel'")
            .await,
        2
    );
}

#[tokio::test]
async fn without_its_secrets_a_scheduler_sends_the_test() {
    let f = Fixture::new().await;
    let server = Server::answering("200 OK", "", "").await;
    f.webhook("ops", &server).await;
    let text = format!("{:?}", f.test(&["--wait", "0"]).await.expect(1));
    assert!(
        text.contains("HOOK is not set here") && text.contains("no scheduler has tried it"),
        "{text}"
    );
    assert_eq!(f.states().await, ["test pending 0"]);
    let sending = async {
        let sender = f.sender();
        loop {
            use sexton_scheduler::background_loop::BackgroundLoop as _;
            if sender.run_once(None).await.unwrap().accepted > 1 {
                break;
            }
            if f.number("SELECT count(*) FROM sexton.notifications WHERE state = 'sent'").await == 2
            {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    let (ended, ()) = tokio::join!(f.test(&["--via-scheduler"]), sending);
    ended.expect(0);
}

#[tokio::test]
async fn lists_show_what_waits_and_what_is_parked() {
    let f = Fixture::new().await;
    let server = Server::answering("500 Internal Server Error", "", "no disk").await;
    f.webhook("ops", &server).await;
    f.opened("billing.run", "ops", 0).await;
    f.run(0).await;
    let text = f.command(&["channels", "list"]).await.expect(0).text();
    assert!(text.contains("failing since") && text.contains("no disk"), "{text}");
    f.sql("UPDATE sexton.notifications SET state = 'parked', finished_at = now()").await;
    let text = f.command(&["alerts", "notifications", "--state", "parked"]).await.expect(0).text();
    assert!(text.contains("billing.run") && text.contains("no disk"), "{text}");
    let none = f.command(&["alerts", "notifications", "--state", "sent"]).await.expect(0).text();
    assert!(none.contains("no such notification"), "{none}");
    f.opened("billing.other", "ops", 1).await;
    f.sql("UPDATE sexton.notifications SET state = 'parked', finished_at = now()").await;
    let text = f.command(&["alerts", "notifications", "--limit", "1"]).await.expect(0).text();
    let (_, cursor) = text.trim_end().split_once("add --cursor ").unwrap();
    assert!(text.contains("billing.other") && !text.contains("billing.run"), "{text}");
    let next = ["alerts", "notifications", "--limit", "1", "--cursor", cursor];
    let text = f.command(&next).await.expect(0).text();
    assert!(text.contains("billing.run") && !text.contains("--cursor"), "{text}");
    f.sql("DELETE FROM sexton.notifications WHERE created_at > (SELECT min(created_at) FROM sexton.notifications)").await;
    f.command(&["alerts", "notifications", "--channel", "absent"]).await.expect(3);
    f.command(&["alerts", "requeue", "--channel", "ops"]).await.expect(2);
    f.command(&["alerts", "requeue", "--channel", "ops", "--all-parked"]).await.expect(0);
    assert_eq!(f.states().await, ["opened pending 1"]);
    f.command(&["alerts", "requeue", "nonsense"]).await.expect(2);
    let oldest =
        sexton_store::alerts::outcome::oldest_due_s(f.db.store(), Some(at(60))).await.unwrap();
    assert!((59.0..61.0).contains(&oldest), "{oldest}");
}
