//! Groups, bulks, incidents, monitors, checks, workers, flows and the audit.

use serde_json::{Value, json};
use uuid::Uuid;

use super::Fixture;

#[tokio::test]
async fn each_document_is_that_of_the_command_line() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let (one, two) = (f.console.failed().await, f.console.failed().await);
    let checks = f
        .console
        .file("checks.toml", "[[check]]\nname = \"backup\"\nevery = \"1h\"\ngrace = \"10m\"\n");
    f.console.run(&["checks", "apply", "-f", &checks]).await.expect(0);
    sexton_store::operator::chain::seal(f.console.store(), 2).await.unwrap();
    let pairs: [(&str, &[&str]); 10] = [
        ("/failure-groups", &["groups", "list"]),
        ("/bulks", &["bulks", "list"]),
        ("/incidents?all=true", &["incidents", "list", "--all"]),
        ("/notifications", &["alerts", "notifications"]),
        ("/monitors", &["monitors", "list"]),
        ("/checks", &["checks", "list"]),
        ("/checks/backup", &["checks", "show", "backup"]),
        ("/flows", &["flows", "list"]),
        ("/audit/head", &["audit", "head"]),
        (
            "/audit?limit=3&action=trigger",
            &["audit", "list", "--limit", "3", "--action", "trigger"],
        ),
    ];
    for (path, command) in pairs {
        let answer = f.get(&token, path).await.expect(200);
        assert_eq!(answer, f.console.json(command).await, "{path}");
    }
    // Who may only look could report for the job with the address of its check.
    let watch = f.token("watch", "viewer").await;
    let seen = f.get(&watch, "/checks").await.expect(200);
    let check = &seen["items"][0];
    assert_eq!((&check["name"], &check["id"]), (&json!("backup"), &json!(Uuid::nil())));
    let seen = f.get(&watch, "/checks/backup").await.expect(200);
    assert_eq!(seen["check"]["id"], json!(Uuid::nil()));
    f.console.incident("backup", "high", "open", 60).await;
    let subject = "UPDATE sexton.incidents SET subject_kind = 'check',
            subject = (SELECT id::text FROM sexton.checks WHERE name = 'backup')
        WHERE name = 'backup' RETURNING id";
    let check: Uuid =
        sqlx::query_scalar(subject).fetch_one(f.console.store().pool()).await.unwrap();
    for path in ["/incidents?all=true".to_owned(), format!("/incidents/{check}")] {
        let (mine, seen) =
            (f.get(&token, &path).await.expect(200), f.get(&watch, &path).await.expect(200));
        let of = |answer: &Value| {
            answer.pointer("/items/0/subject").or(answer.get("subject")).cloned().unwrap()
        };
        assert_eq!(of(&seen), "backup", "{path}");
        assert!(of(&mine).as_str().unwrap().parse::<Uuid>().is_ok(), "{path}: {mine}");
    }
    let actions = f.get(&token, "/audit?action=trigger").await.expect(200);
    let ids: Vec<_> =
        actions["items"].as_array().unwrap().iter().map(|it| &it["execution_id"]).collect();
    assert_eq!(ids, [&json!(two.to_string()), &json!(one.to_string())]);
    assert_eq!(f.get(&token, "/workers").await.expect(200), json!({"items": []}));
    for missing in [
        "/failure-groups/abcdef0123456789",
        "/bulks/7",
        "/workers/w1",
        "/flows/00000000-0000-7000-8000-000000000000",
        "/checks/other",
        "/incidents/00000000-0000-7000-8000-000000000000",
    ] {
        assert_eq!(f.get(&token, missing).await.expect(404)["code"], "not_found", "{missing}");
    }
}

#[tokio::test]
async fn a_group_is_muted_noted_and_opened_again() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    f.console.failed().await;
    let groups = f.get(&token, "/failure-groups").await.expect(200);
    let fingerprint = groups["items"][0]["fingerprint"].as_str().unwrap();
    let path = format!("/failure-groups/{fingerprint}");
    let remark = async |body: &str| f.ask(&token, "POST", &format!("{path}/remark"), body).await;
    let muted = remark(r#"{"state": "muted", "reason": "known"}"#).await.expect(200);
    assert_eq!((&muted["state"], &muted["fingerprint"]), (&"muted".into(), &fingerprint.into()));
    remark(r#"{"state": "muted"}"#).await.expect(409);
    assert_eq!(f.get(&token, "/failures").await.expect(200)["items"], json!([]));
    let found = f.get(&token, "/failures?muted=true").await.expect(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    remark(r#"{"note": "ticket 7"}"#).await.expect(200);
    remark(r#"{"state": "open"}"#).await.expect(200);
    let shown = f.get(&token, &path).await.expect(200);
    assert_eq!(
        (&shown["note"], &shown["state"], &shown["decided_by"]),
        (&"ticket 7".into(), &"open".into(), &"token ann".into())
    );
    for neither in ["{}", r#"{"state": "open", "note": "both"}"#] {
        assert_eq!(remark(neither).await.expect(400)["errors"][0]["pointer"], "/state");
    }
}

#[tokio::test]
async fn an_incident_is_taken_on_silenced_and_resolved() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    f.console.incident("backup", "high", "open", 60).await;
    let listed = f.get(&token, "/incidents?severity=high&kind=job&contains=back").await.expect(200);
    let id = listed["items"][0]["id"].as_str().unwrap().to_owned();
    let act = async |action: &str, body: &str| {
        f.ask(&token, "POST", &format!("/incidents/{id}/{action}"), body).await
    };
    let accepted = act("acknowledge", r#"{"reason": "on it"}"#).await.expect(200);
    assert_eq!(
        (&accepted["state"], &accepted["acknowledged_by"]),
        (&"acknowledged".into(), &"token ann".into())
    );
    act("acknowledge", "").await.expect(409);
    act("silence", r#"{"for_s": 0, "reason": "x"}"#).await.expect(400);
    act("silence", r#"{"for_s": 60}"#).await.expect(400);
    let silent = act("silence", r#"{"for_s": 3600, "reason": "moving"}"#).await.expect(200);
    assert!(silent["silenced_until"].is_string(), "{silent}");
    act("unsilence", "").await.expect(200);
    assert_eq!(act("resolve", "").await.expect(200)["resolved_by"], "token ann");
    act("resolve", "").await.expect(409);
    let shown = f.get(&token, &format!("/incidents/{id}")).await.expect(200);
    assert_eq!(shown, f.console.json(&["incidents", "show", &id]).await);
    let kinds: Vec<_> =
        shown["timeline"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["acknowledged", "silenced", "unsilenced", "resolved"]);
}

#[tokio::test]
async fn a_bulk_is_shown_stopped_and_resumed() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    f.console.failed().await;
    let requeue = ["failed", "requeue", "--error-class", "exit_1", "--yes"];
    f.console.run(&requeue).await.expect(0);
    let shown = f.get(&token, "/bulks/1").await.expect(200);
    assert_eq!(shown, f.console.json(&["bulks", "show", "1"]).await);
    let stop = async || f.ask(&token, "POST", "/bulks/1/stop", r#"{"reason": "wrong ones"}"#).await;
    stop().await.expect(204);
    let twice = stop().await.expect(409);
    assert!(twice["detail"].as_str().unwrap().contains("stopped"), "{twice}");
    f.ask(&token, "POST", "/bulks/1/resume", "").await.expect(204);
    let bulk = f.get(&token, "/bulks").await.expect(200);
    assert_eq!(bulk["items"][0]["id"], 1);
}
