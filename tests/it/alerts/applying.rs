//! The commands that apply and show channels and routes.

use super::Fixture;
use crate::cli::{Ended, sexton_on};

const FILE: &str = r#"
[[channel]]
name = "ops"
webhook = { url = "https://hooks.example/ops", secret = { env = "OPS_HOOK_SECRET" } }
[[channel]]
name = "chat"
slack = { url = { env = "SLACK_URL" } }
[[route]]
labels = { team = "billing" }
severity = ["high"]
channels = ["ops"]
escalate = { after = "15m", channels = ["chat"] }
"#;

impl Fixture {
    pub(super) async fn command(&self, args: &[&str]) -> Ended {
        sexton_on(&self.db, args).await
    }

    async fn apply(&self, text: &str, more: &[&str]) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alerts.toml");
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        self.command(&[&["alerts", "apply", "-f", path], more].concat()).await
    }
}

const AUDITED: &str = "SELECT count(*) FROM sexton.operator_actions WHERE action = 'apply_alerts'";

#[tokio::test]
async fn a_file_is_the_whole_truth_and_a_dry_run_changes_nothing() {
    let f = Fixture::new().await;
    let text = f.apply(FILE, &["--dry-run"]).await.expect(0).text();
    assert!(text.contains("+ channel ops") && text.contains("Nothing was written"), "{text}");
    assert_eq!(f.number("SELECT count(*) FROM sexton.channels").await, 0);
    f.apply(FILE, &["--reason", "first"]).await.expect(0);
    let text = f.apply(FILE, &[]).await.expect(0).text();
    assert!(
        text.contains("0 new, 0 changed, 0 removed, 2 unchanged; 1 routes unchanged"),
        "{text}"
    );
    assert_eq!(f.number(AUDITED).await, 1, "what changes nothing is not audited");

    let shown = f.command(&["alerts", "show"]).await.expect(0).text();
    let text = f.apply(&shown, &[]).await.expect(0).text();
    assert!(
        text.contains("0 changed, 0 removed, 2 unchanged; 1 routes unchanged"),
        "{shown}\n{text}"
    );

    let incident = f.incident("billing.run").await;
    f.notification(incident, "chat", "opened", 0).await;
    let less = "[[channel]]\nname = \"ops\"\nwebhook = { url = \"https://hooks.example/other\" }\n";
    let text = f.apply(less, &[]).await.expect(0).text();
    for expected in [
        "~ channel ops",
        "- channel chat",
        "0 routes, before 1; 1 notifications to removed channels dropped",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(f.states().await, ["opened dropped 0"]);
    assert_eq!(f.number("SELECT count(*) FROM sexton.routes").await, 0);
    assert_eq!(f.number(AUDITED).await, 2);
}

#[tokio::test]
async fn all_problems_of_a_file_are_printed_and_nothing_is_applied() {
    let f = Fixture::new().await;
    let wrong = FILE
        .replace("[\"chat\"]", "[\"caht\"]")
        .replace("{ env = \"SLACK_URL\" }", "\"https://x/hunter2\"");
    let ended = f.apply(&wrong, &[]).await.expect(1);
    let text = format!("{ended:?}");
    assert!(!text.contains("hunter2"), "{text}");
    for expected in ["2 problems; nothing was applied", "no channel of this file", "is a secret"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(f.number("SELECT count(*) FROM sexton.channels").await, 0);
}

#[tokio::test]
async fn a_changed_channel_is_tried_at_once() {
    let f = Fixture::new().await;
    f.apply(FILE, &[]).await.expect(0);
    f.opened("billing.run", "ops", 0).await;
    f.sql(
        "UPDATE sexton.notifications SET attempts = 5, first_sent_at = now(), due_at = now() + interval '1 hour'",
    )
    .await;
    f.sql("UPDATE sexton.channels SET failures = 5, failing_since = now(), next_send_at = now() + interval '1 hour'").await;
    f.apply(&FILE.replace("hooks.example/ops", "hooks.example/new"), &[]).await.expect(0);
    let due =
        "SELECT count(*) FROM sexton.notifications n JOIN sexton.channels c ON c.name = n.channel
               WHERE n.due_at <= now() AND c.next_send_at IS NULL AND c.failures = 5";
    assert_eq!(f.number(due).await, 1);
}
