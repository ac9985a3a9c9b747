//! Channels and routes that are applied and shown, notifications that are listed and requeued.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::Fixture;

const FILE: &str = r#"[[channel]]
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
    /// The newest entry of the audit, and how many there are of its action.
    pub(super) async fn audited(&self, action: &str) -> (Value, usize) {
        let audit = self.console.json(&["audit", "list", "--action", action]).await;
        let rows = audit["items"].as_array().unwrap();
        (rows.first().cloned().unwrap_or_default(), rows.len())
    }
}

#[tokio::test]
async fn channels_and_routes_are_those_of_the_file_or_nothing_changes() {
    let f = Fixture::new().await;
    let token = f.token("root", "admin").await;
    let post = async |body: Value| f.ask(&token, "POST", "/alerts:apply", &body.to_string()).await;
    let dry = post(json!({"text": FILE, "dry_run": true})).await.expect(200);
    let names = json!(["chat", "ops"]);
    assert_eq!((&dry["dry_run"], &dry["change"]["added"]), (&json!(true), &names), "{dry}");
    assert_eq!(f.get(&token, "/channels").await.expect(200), json!({"items": []}));
    let applied = post(json!({"text": FILE, "reason": "first"})).await.expect(200);
    assert_eq!((&applied["dry_run"], &applied["change"]["added"]), (&json!(false), &names));
    let (entry, count) = f.audited("apply_alerts").await;
    assert_eq!((&entry["actor"], &entry["reason"]), (&json!("token root"), &json!("first")));
    assert_eq!(count, 1);

    let shown = f.get(&token, "/alerts").await.expect(200);
    assert_eq!(shown, f.console.json(&["alerts", "show"]).await);
    assert_eq!(shown["channels"][0]["name"], "chat", "{shown}");
    assert_eq!(shown["routes"][0]["escalate"]["channels"], json!(["chat"]), "{shown}");
    let again = post(json!({"text": shown["text"]})).await.expect(200);
    assert_eq!(again["change"]["unchanged"], 2, "{again}");
    assert_eq!(again["change"]["routes_changed"], false, "{again}");
    assert_eq!(f.audited("apply_alerts").await.1, 1, "what changes nothing is not audited");

    let wrong = FILE
        .replace("[\"chat\"]", "[\"caht\"]")
        .replace("{ env = \"SLACK_URL\" }", "\"https://x/hunter2\"");
    let refused = post(json!({"text": wrong, "file": "my.toml"})).await.expect(400);
    let errors = refused["errors"].as_array().unwrap();
    let lines: Vec<_> = errors.iter().map(|one| &one["line"]).collect();
    assert_eq!(lines, [&json!(6), &json!(11)], "{refused}");
    assert!(errors[0]["detail"].as_str().unwrap().starts_with("my.toml:6: "), "{refused}");
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
    assert_eq!(f.get(&token, "/alerts").await.expect(200), shown);
    let emptied = post(json!({"text": ""})).await.expect(200);
    assert_eq!(emptied["change"]["removed"], names, "{emptied}");
    // Who may look at channels does not see where they lead.
    let watch = f.token("watch", "viewer").await;
    f.get(&watch, "/alerts").await.expect(403);
    for path in ["/audit?action=apply_alerts", "/audit/export?action=apply_alerts"] {
        let audit = f.get(&watch, path).await.expect(200).to_string();
        assert!(audit.contains("chat") && audit.contains("webhook"), "{audit}");
        assert!(!audit.contains("hooks.example") && !audit.contains("SLACK_URL"), "{audit}");
    }
    let (entry, _) = f.audited("apply_alerts").await;
    assert_eq!(entry["before"]["channels"][1]["config"]["url"], "***", "{entry}");
    let unmasked = ["audit", "list", "--action", "apply_alerts", "--unmasked"];
    let unmasked = f.console.json(&unmasked).await.to_string();
    assert!(unmasked.contains("https://hooks.example/ops"), "{unmasked}");
    // Nor does an editor have variables of the schedulers sent anywhere.
    let editor = f.token("ed", "editor").await;
    let file = json!({"text": FILE}).to_string();
    f.ask(&editor, "POST", "/alerts:apply", &file).await.expect(403);
}

/// Parks three notifications to a channel `ops`; returns their ids, the newest first.
async fn park(f: &Fixture) -> Vec<String> {
    f.console.run(&["alerts", "apply", "-f", &f.console.file("alerts.toml", FILE)]).await.expect(0);
    let mut ids = Vec::new();
    for minutes in 1..=3 {
        let id = Uuid::now_v7();
        let insert = format!(
            "INSERT INTO sexton.notifications (id, channel, kind, detail, created_at, due_at, state, finished_at)
             SELECT '{id}', 'ops', 'test', 'a test', at, at, 'parked', at FROM (SELECT now() - interval '{minutes} min' AS at) t"
        );
        sqlx::raw_sql(AssertSqlSafe(insert)).execute(f.console.store().pool()).await.unwrap();
        ids.push(id.to_string());
    }
    ids
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn notifications_are_listed_by_pages_as_on_the_command_line() {
    let f = Fixture::new().await;
    let parked = park(&f).await;
    let token = f.token("watch", "viewer").await;
    let all = f.get(&token, "/notifications").await.expect(200);
    assert_eq!(all, f.console.json(&["alerts", "notifications"]).await);
    assert_eq!(ids(&all), parked);
    assert_eq!(all["next_cursor"], Value::Null);
    let first = f.get(&token, "/notifications?limit=2&state=parked&channel=ops").await.expect(200);
    assert_eq!(ids(&first), parked[..2]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let path = format!("/notifications?limit=2&state=parked&channel=ops&cursor={cursor}");
    let second = f.get(&token, &path).await.expect(200);
    assert_eq!(ids(&second), parked[2..]);
    assert_eq!(second["next_cursor"], Value::Null);
    let command = ["alerts", "notifications", "--limit", "2", "--cursor", cursor];
    assert_eq!(f.console.json(&command).await, second);
    for path in ["/notifications?state=sent", "/notifications?channel=chat"] {
        assert!(ids(&f.get(&token, path).await.expect(200)).is_empty(), "{path}");
    }
    f.get(&token, "/notifications?channel=absent").await.expect(404);
    for (path, parameter) in
        [("/notifications?state=lost", "state"), ("/notifications?cursor=x", "cursor")]
    {
        let refused = f.get(&token, path).await.expect(400);
        assert_eq!(refused["errors"][0]["parameter"], parameter, "{refused}");
    }
}

#[tokio::test]
async fn parked_notifications_are_tried_again_once() {
    let f = Fixture::new().await;
    let parked = park(&f).await;
    let token = f.token("ops", "operator").await;
    let path = "/notifications:requeue";
    let post = async |body: Value| f.ask(&token, "POST", path, &body.to_string()).await;
    post(json!({})).await.expect(400);
    post(json!({"channel": "absent"})).await.expect(404);
    let many: Vec<Uuid> = (0..1_001).map(|_| Uuid::now_v7()).collect();
    for (body, pointer) in [
        (json!({"ids": ["nonsense"]}), "/ids/0"),
        (json!({"ids": [parked[0]], "channel": "ops"}), "/channel"),
        (json!({"ids": many}), "/ids"),
    ] {
        let refused = post(body).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused}");
    }
    assert_eq!(f.audited("requeue_notifications").await.1, 0, "nothing was changed");
    let one = json!({"ids": [parked[0]], "reason": "the receiver is back"});
    let requeued = post(one.clone()).await.expect(200);
    assert_eq!(requeued, json!({"requeued": [parked[0]]}));
    post(one).await.expect(409);
    let (entry, _) = f.audited("requeue_notifications").await;
    let expected = (&json!("token ops"), &json!("the receiver is back"));
    assert_eq!((&entry["actor"], &entry["reason"]), expected);
    let others = post(json!({"channel": "ops"})).await.expect(200);
    assert_eq!(others["requeued"].as_array().unwrap().len(), 2, "{others}");
    post(json!({"channel": "ops"})).await.expect(409);
    let pending = f.get(&token, "/notifications?state=pending").await.expect(200);
    assert_eq!(ids(&pending).len(), 3);
}
