//! The items of a bulk, each with its result and what has become of its execution since.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;
use sexton_model::retry::Decision;
use sexton_store::bulk::execute_batch;
use sexton_store::settle::settle;

use super::Fixture;
use super::page_actions::{expect, send};
use crate::store::settlement;

/// A bulk that has requeued two executions, of which the first has succeeded then, and refused the third.
async fn requeued(f: &Fixture, token: &str) -> [ExecutionId; 3] {
    let ids = [f.console.failed().await, f.console.failed().await, f.console.failed().await];
    let executions = ids.map(|id| json!({"id": id}));
    let request = json!({"kind": "requeue", "executions": executions}).to_string();
    let bulk = f.ask(token, "POST", "/bulks", &request).await.expect(201);
    assert_eq!(bulk["id"], 1);
    let discard = format!("/failures/{}/discard", ids[2]);
    f.ask(token, "POST", &discard, r#"{"reason": "paid in cash"}"#).await.expect(200);
    // As schedulers carry it out.
    let store = f.console.store();
    let mut is_over = false;
    for _ in 0..10 {
        is_over = execute_batch(store, 1, None).await.unwrap().is_some_and(|batch| batch.over);
        if is_over {
            break;
        }
    }
    assert!(is_over, "each item is in the first batch");
    let held = f.console.open(ids[0], 2).await;
    settle(store, &[settlement(held, Decision::Succeed)], None).await.unwrap();
    ids
}

/// The result, the reason, the present state and the job of each item, by its execution. No execution may come twice.
fn results(items: &[Value]) -> BTreeMap<String, [Value; 4]> {
    let mut found = BTreeMap::new();
    for item in items {
        let id = item["execution_id"].as_str().unwrap().to_owned();
        let result = ["state", "note", "execution_state", "job_name"].map(|it| item[it].clone());
        assert_eq!(found.insert(id, result), None, "{items:?}");
    }
    found
}

#[tokio::test]
async fn each_item_of_a_bulk_is_listed_once_with_its_result_and_its_execution_s_state() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let ids = requeued(&f, &token).await;
    let watch = f.token("watch", "viewer").await;
    let get = async |query: &str| f.get(&watch, &format!("/bulks/1/items{query}")).await;
    let first = get("?limit=2").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = get(&format!("?limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!(second["next_cursor"], Value::Null);
    let items = |page: &Value| page["items"].as_array().unwrap().clone();
    let (first, second) = (items(&first), items(&second));
    assert_eq!((first.len(), second.len()), (2, 1));
    let all = [first, second].concat();
    let found = results(&all);
    let of = |index: usize| found[&ids[index].to_string()].clone();
    let job = json!("shop.charge");
    assert_eq!(of(0), [json!("done"), Value::Null, json!("succeeded"), job.clone()]);
    assert_eq!(of(1), [json!("done"), Value::Null, json!("pending"), job.clone()]);
    let why = json!("it was discarded at attempt 2");
    assert_eq!(of(2), [json!("refused"), why, json!("discarded"), job]);
    for item in &all {
        assert_eq!(item["acted_at"].is_string(), item["state"] == "done", "{item}");
    }
    let refused = items(&get("?state=refused").await.expect(200));
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["execution_id"], json!(ids[2]));
    let done = items(&get("?state=done").await.expect(200));
    assert_eq!(done.len(), 2, "{done:?}");
    assert_eq!(get("?state=waiting").await.expect(200)["items"], json!([]));
    get("?state=failed").await.expect(400);
    get("?cursor=x").await.expect(400);
    f.get(&watch, "/bulks/7/items").await.expect(404);
}

#[tokio::test]
async fn the_command_lists_the_items_that_the_api_lists() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let ids = requeued(&f, &token).await;
    let by_api = f.get(&token, "/bulks/1/items?state=done").await.expect(200);
    assert_eq!(f.console.json(&["bulks", "items", "1", "--state", "done"]).await, by_api);
    let text = f.console.run(&["bulks", "items", "1"]).await.expect(0).text();
    assert!(text.contains("succeeded") && text.contains("it was discarded at attempt 2"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("shop.charge")).collect();
    let shown = |id: &ExecutionId| {
        let id = id.to_string();
        rows.iter().filter(|row| row.split(' ').next().is_some_and(|it| id.starts_with(it))).count()
    };
    assert_eq!(ids.each_ref().map(shown), [1; 3], "each by what names it alone: {text}");
    f.console.run(&["bulks", "items", "1", "--state", "failed"]).await.expect(2);
    f.console.run(&["bulks", "items", "7"]).await.expect(3);
}

#[tokio::test]
async fn the_page_of_a_bulk_shows_its_items_page_by_page_and_by_their_results() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let ids = requeued(&f, &token).await;
    let page = async |path: &str| expect(send(&f, &token, "GET", path, "").await);
    let first = page("/bulks/1?limit=2").await;
    let next = first.split(r#"rel="next" href=""#).nth(1).and_then(|it| it.split('"').next());
    let next = next.unwrap_or_else(|| panic!("no next page: {first}"));
    assert!(next.starts_with("/bulks/1?limit=2&cursor="), "{next}");
    let second = page(next).await;
    let rows = |page: &str| page.matches("<tr id=\"i-").count();
    assert_eq!((rows(&first), rows(&second)), (2, 1));
    // Each item is on one of both.
    for ordinal in 1..=3 {
        let row = format!("<tr id=\"i-{ordinal}\">");
        assert!(first.contains(&row) != second.contains(&row), "{row}: {first}{second}");
    }
    let all = page("/bulks/1").await;
    assert!(!all.contains("rel=\"next\""), "{all}");
    assert!(all.contains("id=\"left\"") && all.contains("it was discarded at attempt 2"), "{all}");
    let execution = |id: ExecutionId| format!("<a href=\"/executions/{id}\">");
    assert!(all.contains(&execution(ids[0])) && all.contains(&execution(ids[1])), "{all}");
    assert!(all.contains("<span class=\"state state-succeeded\">succeeded</span>"), "{all}");
    assert!(all.contains("href=\"/bulks/1?state=refused\""), "{all}");
    let refused = page("/bulks/1?state=refused").await;
    assert_eq!(rows(&refused), 1, "{refused}");
    assert!(refused.contains(&format!("<a href=\"/failed/{}\">", ids[2])), "{refused}");
    let none = page("/bulks/1?state=waiting").await;
    assert!(rows(&none) == 0 && none.contains("No item is in this state."), "{none}");
}
