//! `sexton audit`: what operators did, listed and exported.

use serde_json::{Value, json};

use super::{Console, keys};

#[tokio::test]
async fn what_was_done_to_jobs_and_executions_is_listed_with_who_and_from_where() {
    let console = Console::with_jobs().await;
    let id = console.failed().await.to_string();
    console.run(&["jobs", "pause", "shop.mail", "--reason", "a change"]).await.expect(0);
    console.run(&["failed", "requeue", &id, "--reason", "\u{1b}[31mred"]).await.expect(0);
    let all = console.json(&["audit", "list"]).await;
    let actions: Vec<&Value> = all.as_array().unwrap().iter().map(|row| &row["action"]).collect();
    assert_eq!(actions[..3], [&json!("requeue"), &json!("pause"), &json!("trigger")]);
    assert!(actions.len() == 6, "three jobs were applied: {actions:?}");
    for row in all.as_array().unwrap() {
        let place = row["from_where"].as_str().unwrap();
        assert!(
            place.split_once(':').is_some_and(|(_, pid)| pid.parse::<u32>().is_ok()),
            "{place}"
        );
        assert!(row["actor"].as_str().unwrap().starts_with("tester@"));
    }
    let told = console.run(&["audit", "list", "--execution", &id]).await.expect(0).stdout;
    assert!(
        told.contains("requeue") && !told.contains('\u{1b}') && !told.contains("pause"),
        "{told}"
    );
    let job = console.json(&["audit", "list", "--job", "shop.mail"]).await;
    assert_eq!(job.as_array().unwrap().len(), 2, "applied and paused: {job}");
    let page = console.json(&["audit", "list", "--limit", "1", "--before", "6"]).await;
    assert_eq!(page[0]["id"], 5);
    assert_eq!(console.json(&["audit", "list", "--actor", "nobody"]).await, json!([]));
    console.run(&["audit", "list", "--job", "no.such"]).await.expect(3);
    console.run(&["audit", "list", "--since", "yesterday"]).await.expect(2);
}

#[tokio::test]
async fn an_export_has_everything_in_order_and_goes_on_where_one_before_ended() {
    let console = Console::with_jobs().await;
    let id = console.failed().await.to_string();
    console.run(&["failed", "requeue", &id, "--reason", "a, \"b\"\nc"]).await.expect(0);
    let lines = async |args: &[&str]| {
        let text = console.run(&[&["audit", "export"], args].concat()).await.expect(0).stdout;
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&[]).await.len(), 0, "what is being recorded is left for later");
    let all = lines(&["--unsettled"]).await;
    let ids: Vec<Value> =
        all.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(json!(ids), json!([1, 2, 3, 4, 5]));
    let row: Value = serde_json::from_str(&all[4]).unwrap();
    assert_eq!(
        keys(&row),
        [
            "action",
            "actor",
            "after",
            "at",
            "before",
            "bulk_id",
            "execution_id",
            "from_address",
            "from_where",
            "id",
            "job_id",
            "reason"
        ]
    );
    assert_eq!(row["reason"], "a, \"b\"\nc");
    assert_eq!(lines(&["--unsettled", "--after", "3"]).await.len(), 2);
    let csv = lines(&["--unsettled", "--format", "csv", "--action", "requeue"]).await;
    assert_eq!(csv.len(), 2, "a heading and a line: {csv:?}");
    assert!(
        csv[0].starts_with("id,at,actor,action,") && csv[1].contains(r#""a, ""b""\nc""#),
        "{csv:?}"
    );
}
