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
