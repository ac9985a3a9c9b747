//! The registry of lock keys.

use serde_json::{Value, json};

use super::Fixture;

async fn recorded(f: &Fixture, action: &str) -> usize {
    let audit = f.console.json(&["audit", "list", "--action", action]).await;
    audit["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn ranges_are_assigned_and_removed_and_the_audit_has_each_change() {
    let f = Fixture::new().await;
    let token = f.token("ann", "editor").await;
    let post = async |path: &str, body: Value| f.ask(&token, "POST", path, &body.to_string()).await;
    let range = |keys: u32| json!({"service": "stock", "start": 1000, "keys": keys});
    let assigned = post("/lock-keys/stock/assign", json!({"reason": "new"})).await.expect(200);
    assert_eq!(assigned, json!({"before": null, "after": range(50)}));
    let again = post("/lock-keys/stock/assign", json!({})).await.expect(409);
    assert!(again["detail"].as_str().unwrap().contains("has that range already"), "{again}");
    let longer = post("/lock-keys/stock/assign", json!({"keys": 60})).await.expect(200);
    assert_eq!(longer, json!({"before": range(50), "after": range(60)}));
    let wrong = post("/lock-keys/stock/assign", json!({"keys": 0})).await.expect(400);
    assert_eq!(wrong["errors"][0]["pointer"], "/keys", "{wrong}");
    let detail = wrong["errors"][0]["detail"].as_str().unwrap();
    assert!(!detail.starts_with(':') && wrong["detail"] == format!("keys: {detail}"), "{wrong}");
    post("/lock-keys/other/assign", json!({"start": 1010})).await.expect(409);
    assert_eq!(recorded(&f, "assign_keys").await, 2);
    let dry = post("/lock-keys/stock/remove", json!({"dry_run": true})).await.expect(200);
    assert_eq!(dry, json!({"dry_run": true, "before": range(60), "after": null}));
    assert_eq!(recorded(&f, "remove_keys").await, 0);
    let removed = post("/lock-keys/stock/remove", json!({"reason": "gone"})).await.expect(200);
    assert_eq!(removed["dry_run"], false);
    assert_eq!(recorded(&f, "remove_keys").await, 1);
    post("/lock-keys/stock/remove", json!({})).await.expect(404);
    let listed = f.get(&token, "/lock-keys").await.expect(200);
    assert_eq!(listed, json!({"ranges": []}));
}

#[tokio::test]
async fn a_file_of_ranges_is_imported_whole_or_not_at_all() {
    let f = Fixture::new().await;
    let token = f.token("ann", "editor").await;
    let import =
        async |body: Value| f.ask(&token, "POST", "/lock-keys:import", &body.to_string()).await;
    let wrong = "service,start,keys\nstock,7000,10\nmail,x,10\nmail,7020,10\n";
    let refused = import(json!({"text": wrong, "file": "keys.csv"})).await.expect(400);
    let lines: Vec<_> =
        refused["errors"].as_array().unwrap().iter().map(|it| &it["line"]).collect();
    assert!(lines.contains(&&json!(3)), "{refused}");
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("keys.csv:"), "{refused}");
    let text = "service,start,keys\nstock,7000,10\nmail,7020,10\n";
    let dry = import(json!({"text": text, "dry_run": true})).await.expect(200);
    assert_eq!(f.get(&token, "/lock-keys").await.expect(200), json!({"ranges": []}));
    let done = import(json!({"text": text})).await.expect(200);
    assert_eq!((&done["changes"], &done["unchanged"]), (&dry["changes"], &json!(0)));
    assert_eq!(done["changes"].as_array().unwrap().len(), 2, "{done}");
    let again = import(json!({"text": text})).await.expect(200);
    assert_eq!(again, json!({"dry_run": false, "changes": [], "unchanged": 2}));
    assert_eq!(recorded(&f, "assign_keys").await, 2, "nothing is recorded where nothing changes");
}

#[tokio::test]
async fn the_findings_are_those_of_the_command_line() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    // The jobs of this service have no keys.
    f.console.run(&["keys", "assign", "shop"]).await.expect(0);
    let found = f.get(&token, "/lock-keys:check").await.expect(200);
    let printed = f.console.run(&["--json", "keys", "check"]).await.expect(8);
    assert_eq!(found, printed.json());
    let no_key = |it: &Value| it["code"] == "no_key" && it["subject"] == "shop.charge";
    assert!(found["findings"].as_array().unwrap().iter().any(no_key), "{found}");
}
