//! What operators see of a flow.

use serde_json::json;

use super::{Fixture, after};
use crate::cli::sexton_on;
use crate::store::fail;

async fn flow() -> (Fixture, String) {
    let f = Fixture::new().await;
    let id = f
        .begin(&[
            after("extract", &[]),
            after("load", &["extract"]),
            after("index", &["extract"]),
            ("report", &["load", "index"], json!({"when": "all_done"})),
            ("alarm", &["load"], json!({"when": "any_failed"})),
        ])
        .await;
    (f, id.to_string())
}

#[tokio::test]
async fn a_flow_is_drawn_as_a_tree_and_each_member_says_what_it_waits_for() {
    let (f, id) = flow().await;
    f.succeed("extract").await;
    f.settle("load", fail()).await;
    let load = f.id("load").await.to_string();
    for args in
        [&["flows", "show", &id][..], &["flows", "show", &load], &["executions", "show", &load]]
    {
        let text = sexton_on(&f.rows.db, args).await.expect(0).text();
        let lines: Vec<&str> = text.lines().collect();
        let row = |name: &str| {
            *lines
                .iter()
                .find(|line| line.contains(name))
                .unwrap_or_else(|| panic!("{name}: {text}"))
        };
        assert!(row("extract ").contains("succeeded"), "{text}");
        assert!(row("├─ index").contains("pending"), "{text}");
        assert!(row("└─ load").contains("failed"), "{text}");
        assert!(
            row("   ├─ alarm").contains("blocked: load is parked; requeue or discard it"),
            "{text}"
        );
        assert!(row("   └─ report").contains("blocked: load is parked"), "{text}");
    }
    let list = sexton_on(&f.rows.db, &["flows", "list", "--open"]).await.expect(0).text();
    assert!(list.contains("the flow") && list.contains("blocked: 1 parked"), "{list}");
    let report = f.id("report").await.to_string();
    let text = sexton_on(&f.rows.db, &["executions", "show", &report]).await.expect(0).text();
    assert!(text.contains("held back until the members before it have ended"), "{text}");
    assert!(!text.contains("9999"), "{text}");
    let listed = sexton_on(&f.rows.db, &["executions", "list"]).await.expect(0).text();
    assert!(
        listed.contains("waits for others of its flow") && !listed.contains("in 79"),
        "{listed}"
    );
}

#[tokio::test]
async fn an_execution_says_what_it_waits_for_and_what_became_of_it() {
    let (f, id) = flow().await;
    let explained = async |member: &str| {
        let execution = f.id(member).await.to_string();
        let answer = sexton_on(&f.rows.db, &["executions", "explain", &execution]).await;
        answer.expect(0).text()
    };
    let text = explained("report").await;
    assert!(text.contains("as report of the flow the flow, it is held up"), "{text}");
    assert!(text.contains("waits for the ends of index, load"), "{text}");
    assert!(text.contains(&id) && !text.contains("9999"), "{text}");
    let text = explained("extract").await;
    assert!(text.contains("it is claimed, and waits to be run"), "{text}");
    f.succeed("extract").await;
    f.settle("load", fail()).await;
    let text = explained("alarm").await;
    assert!(text.contains("blocked: load is parked; requeue or discard it"), "{text}");
    let load = f.id("load").await.to_string();
    assert!(text.contains(&load), "{text}");
    let text = explained("load").await;
    assert!(text.contains("and waits for an operator") && text.contains("ended"), "{text}");
    sexton_on(&f.rows.db, &["failed", "discard", &load, "--reason", "no", "--yes"]).await.expect(0);
    let text = explained("alarm").await;
    assert!(text.contains("it is claimed"), "{text}");
    let json = ["--json", "executions", "explain", &load];
    let json = sexton_on(&f.rows.db, &json).await.expect(0).text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["disposition"], "discarded");
    assert_eq!(json["flow"]["member"]["name"], "load");
    let none = "0199aabb-cc00-7000-8000-0000000000af";
    let text = sexton_on(&f.rows.db, &["executions", "explain", none]).await.text();
    assert!(text.contains("0199aabb"), "{text}");
}

/// Of many before a member, the one that is parked is named whatever their number and order.
#[tokio::test]
async fn among_many_upstream_the_parked_one_is_named() {
    let f = Fixture::new().await;
    let names: Vec<String> = (0..40).map(|number| format!("part{number:02}")).collect();
    let upstream: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut members: Vec<_> = upstream.iter().map(|name| after(name, &[])).collect();
    members.push(after("join", &upstream));
    let id = f.begin(&members).await.to_string();
    f.settle("part39", fail()).await;
    let text = sexton_on(&f.rows.db, &["flows", "show", &id]).await.expect(0).text();
    assert!(text.contains("blocked: part39 is parked"), "{text}");
    let join = f.id("join").await.to_string();
    let text = sexton_on(&f.rows.db, &["executions", "explain", &join]).await.expect(0).text();
    assert!(text.contains("blocked: part39 is parked"), "{text}");
}

#[tokio::test]
async fn a_flow_is_cancelled_as_a_whole_and_what_is_parked_stays() {
    let (f, id) = flow().await;
    f.succeed("extract").await;
    f.settle("load", fail()).await;
    let cancelled =
        sexton_on(&f.rows.db, &["flows", "cancel", &id, "--yes", "--reason", "wrong day"]).await;
    let text = cancelled.expect(0).text();
    assert!(
        text.contains("Waiting members that ended: 3") && text.contains("1 parked as failed stay"),
        "{text}"
    );
    f.expect(&[
        ("extract", "succeeded"),
        ("load", "failed"),
        ("index", "cancelled"),
        ("report", "cancelled"),
        ("alarm", "cancelled"),
    ])
    .await;
    assert_eq!(f.open().await, (1, false));
    let load = f.id("load").await.to_string();
    sexton_on(&f.rows.db, &["failed", "discard", &load, "--reason", "wrong day", "--yes"])
        .await
        .expect(0);
    assert_eq!(f.open().await, (0, true));
    let again = sexton_on(&f.rows.db, &["flows", "cancel", &id, "--yes"]).await.text();
    assert!(again.contains("has ended"), "{again}");
    let none = sexton_on(&f.rows.db, &["flows", "show", "0199aabb-cc00-7000-8000-0000000000af"])
        .await
        .text();
    assert!(none.contains("there is no flow 0199aabb"), "{none}");
}
