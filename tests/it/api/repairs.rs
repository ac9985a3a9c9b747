//! What the doctor finds, on the overview, and its repairs.

use serde_json::{Value, json};

use super::scopes::restricted;
use super::{Fixture, eventually};

/// Findings on the overview.
const MAX_SHOWN: usize = 5;

fn codes(answer: &Value) -> Vec<&str> {
    let findings = answer["findings"].as_array().unwrap().iter();
    findings.map(|it| it["code"].as_str().unwrap()).collect()
}

/// Adds a worker that has been silent for two hours.
async fn add_silent_worker(f: &Fixture) {
    let silent = "INSERT INTO sexton.instances (id, kind, name, pid, started_at, heartbeat_at, version, ready)
        VALUES (gen_random_uuid(), 'worker', 'w9', 1, now() - interval '1 day', now() - interval '2 hours', '0.0.9', true)";
    sqlx::query(silent).execute(f.console.store().pool()).await.unwrap();
}

/// The doctor's part of the overview.
async fn findings_on_overview(f: &Fixture, token: &str) -> String {
    let authorization = format!("Authorization: Bearer {token}");
    let page = f.send_to("GET", "/", &["Host: localhost", &authorization], "").await.expect(200);
    let (_, part) = page.as_str().unwrap().split_once("<h2 id=\"doctor\">").unwrap();
    part.split("</section>").next().unwrap().to_owned()
}

#[tokio::test]
async fn the_overview_shows_what_the_doctor_finds_until_it_is_repaired() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    // The findings are about the platform, so everybody who may look at it sees them, as over the API.
    let team = restricted(&f, "team", "operator", "billing.*").await;
    add_silent_worker(&f).await;
    let first = findings_on_overview(&f, &team).await;
    assert!(first.contains("is being examined"), "{first}");
    eventually("the examination in the background has ended", async || {
        !findings_on_overview(&f, &team).await.contains("is being examined")
    })
    .await;
    let found = findings_on_overview(&f, &team).await;
    for text in [
        "<code>no_scheduler</code>",
        "Start a scheduler",
        "<code>process_silent</code>",
        "<code>sexton doctor --fix</code> repairs it.",
        "w9",
        "Examined <time",
        "without RabbitMQ",
    ] {
        assert!(found.contains(text), "{text}: {found}");
    }
    assert!(found.find("no_scheduler") < found.find("process_silent"), "the worst first: {found}");
    // A program gets the same examination, and what it leaves is on the page.
    let listed = f.get(&team, "/doctor").await.expect(200);
    let shown = found.matches("<li ").count();
    // Notes are only counted, and newer servers have some.
    let wrong = listed["findings"].as_array().unwrap().iter().filter(|it| it["severity"] != "note");
    assert_eq!(shown, wrong.count().min(MAX_SHOWN), "{listed}: {found}");
    f.ask(&admin, "POST", "/doctor:fix", r#"{"reason": "w9 is gone"}"#).await.expect(200);
    let repaired = findings_on_overview(&f, &team).await;
    assert!(!repaired.contains("process_silent"), "{repaired}");
    assert!(repaired.contains("<code>no_scheduler</code>"), "{repaired}");
}

#[tokio::test]
async fn an_admin_repairs_what_is_safe_to_repair_and_the_audit_has_it() {
    let f = Fixture::new().await;
    let (admin, editor) = (f.token("root", "admin").await, f.token("ed", "editor").await);
    add_silent_worker(&f).await;
    let found = f.get(&admin, "/doctor").await.expect(200);
    assert!(codes(&found).contains(&"process_silent"), "{found}");
    f.ask(&editor, "POST", "/doctor:fix", "").await.expect(403);
    let refused = f.ask(&admin, "POST", "/doctor:fix", r#"{"why": "gone"}"#).await.expect(400);
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("why"), "{refused}");
    let reason = r#"{"reason": "w9 is gone"}"#;
    let repaired = f.ask(&admin, "POST", "/doctor:fix", reason).await.expect(200);
    let fixed = &repaired["fixed"];
    assert_eq!((&fixed[0]["code"], &fixed[0]["done"]), (&json!("process_silent"), &json!(true)));
    assert_eq!(fixed.as_array().unwrap().len(), 1, "{repaired}");
    assert!(!codes(&repaired).contains(&"process_silent"), "{repaired}");
    assert_eq!(repaired["broker_examined"], false);
    // What was found before serves nobody any more.
    let now = f.get(&admin, "/doctor").await.expect(200);
    assert_eq!(now["examined_at"], repaired["examined_at"]);
    let again = f.ask(&admin, "POST", "/doctor:fix", "").await.expect(200);
    assert_eq!(again["fixed"], json!([]), "{again}");
    let audit = f.get(&editor, "/audit?action=doctor_fix").await.expect(200);
    let rows = audit["items"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{audit}");
    let by = (&rows[0]["actor"], &rows[0]["reason"]);
    assert_eq!(by, (&json!("token root"), &json!("w9 is gone")), "{audit}");
    assert_eq!(rows[0]["after"], json!({"finding": "process_silent"}), "{audit}");
    assert!(rows[0]["from_where"].as_str().unwrap().starts_with("api "), "{audit}");
}

#[tokio::test]
async fn a_request_does_not_wait_for_the_end_of_a_long_repair() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let pool = f.console.store().pool();
    let mut holder = pool.begin().await.unwrap();
    let lock = "LOCK TABLE sexton.operator_actions IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut *holder).await.unwrap();
    let repair = f.ask(&admin, "POST", "/doctor:fix", "");
    let others = async {
        eventually("the repair waits", async || {
            let waits = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                WHERE d.datname = current_database() AND l.locktype = 'relation' AND NOT l.granted)";
            sqlx::query_scalar::<_, bool>(waits).fetch_one(pool).await.unwrap()
        })
        .await;
        // The overview is there while the repair still waits for the lock.
        let shown = findings_on_overview(&f, &admin).await;
        assert!(shown.contains("is being examined"), "{shown}");
        for (method, path) in [("GET", "/doctor"), ("POST", "/doctor:fix")] {
            let refused = f.ask(&admin, method, path, "").await;
            assert_eq!(refused.header("retry-after"), Some("5"), "{path}: {}", refused.body);
            let refused = refused.expect(503);
            assert_eq!(refused["code"], "unavailable", "{path}: {refused}");
            let detail = refused["detail"].as_str().unwrap();
            assert!(detail.contains("is under way"), "{path}: {refused}");
        }
        holder.rollback().await.unwrap();
    };
    let (repaired, ()) = tokio::join!(repair, others);
    repaired.expect(200);
    f.get(&admin, "/doctor").await.expect(200);
}
