//! What cannot be understood, and servers that do not answer.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::Fixture;

/// Five times what a list may take in the database, since other tests run beside.
const SLOW: Duration = Duration::from_secs(10);

#[tokio::test]
async fn what_cannot_be_understood_is_refused_with_its_place() {
    let f = Fixture::new().await;
    let token = f.token("ann", "admin").await;
    let parameter = async |path: &str| {
        let refused = f.get(&token, path).await.expect(400);
        assert_eq!(refused["code"], "invalid");
        (refused["errors"][0]["parameter"].clone(), refused["detail"].as_str().unwrap().to_owned())
    };
    for (path, name, problem) in [
        ("/jobs?limit=0", "limit", "must be 1 to 1000, not 0"),
        ("/jobs?limit=many", "limit", "invalid digit"),
        ("/jobs?status=idle", "status", "unknown variant"),
        ("/jobs?cursor=x", "cursor", "next_cursor"),
        ("/jobs?colour=red", "colour", "unknown field"),
        ("/executions?state=dead", "state", "unknown variant"),
        ("/executions/7", "id", "UUID"),
        ("/failures?since=yesterdayish", "since", "yesterdayish"),
    ] {
        let (place, detail) = parameter(path).await;
        assert_eq!(place, name, "{path}: {detail}");
        assert!(detail.contains(problem), "{path}: {detail}");
    }
    let all = f.get(&token, "/failures?since=x&param=y&job=shop.chrage").await.expect(400);
    let places: Vec<_> =
        all["errors"].as_array().unwrap().iter().map(|one| &one["parameter"]).collect();
    assert_eq!(places.len(), 3, "{all}");
    for (body, pointer) in [
        (r#"{"name": "a", "role": "king"}"#, "/role"),
        (r#"{"name": "a", "role": "viewer", "age": 7}"#, "/age"),
        (r#"{"name": 7, "role": "viewer"}"#, "/name"),
        ("[", ""),
    ] {
        let refused = f.ask(&token, "POST", "/tokens", body).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused}");
    }
    let authorization = format!("Authorization: Bearer {token}");
    let form = ["Host: x", &authorization, "Content-Type: application/x-www-form-urlencoded"];
    f.send("POST", "/tokens", &form, "name=a").await.expect(415);
    let long = format!(r#"{{"name": "{}"}}"#, "a".repeat(5_000_000));
    f.ask(&token, "POST", "/tokens", &long).await.expect(413);
    assert_eq!(f.get(&token, "/nothing").await.expect(404)["code"], "invalid");
    assert_eq!(f.ask(&token, "PUT", "/jobs", "{}").await.expect(405)["code"], "invalid");
    assert_eq!(f.console.json(&["tokens", "list"]).await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_table_that_is_locked_holds_up_neither_actions_nor_those_who_look_elsewhere() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let failed = f.console.failed().await;
    let mut tx = f.console.store().pool().begin().await.unwrap();
    let lock = "LOCK TABLE sexton.checks IN ACCESS EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *tx).await.unwrap();
    // Alone, so that it waits for the database and not for a connection.
    let alone = timeout(SLOW, f.get(&token, "/checks")).await.unwrap();
    let problem = alone.expect(503);
    assert_eq!(problem["code"], "too_slow");
    assert!(problem["detail"].as_str().unwrap().contains("Narrow"), "{problem}");
    // More than there are connections for them.
    let looking = futures_util::future::join_all((0..12).map(|_| f.get(&token, "/checks")));
    let mut looking = std::pin::pin!(looking);
    let acting = async {
        f.get(&token, "/me").await.expect(200);
        let path = format!("/failures/{failed}/discard");
        f.ask(&token, "POST", &path, r#"{"reason": "test"}"#).await.expect(200);
    };
    tokio::select! {
        _ = &mut looking => panic!("nobody waits for the table"),
        () = acting => {}
    }
    for answer in looking.await {
        assert_eq!(answer.status, 503, "{}", answer.body);
        let code = &answer.body["code"];
        assert!(*code == json!("too_slow") || *code == json!("unavailable"), "{code}");
    }
    tx.rollback().await.unwrap();
    f.get(&token, "/checks").await.expect(200);
}
