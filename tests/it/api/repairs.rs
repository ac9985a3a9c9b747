//! Repairs of the doctor.

use serde_json::{Value, json};

use super::{Fixture, eventually};

fn codes(answer: &Value) -> Vec<&str> {
    let findings = answer["findings"].as_array().unwrap().iter();
    findings.map(|it| it["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_admin_repairs_what_is_safe_to_repair_and_the_audit_has_it() {
    let f = Fixture::new().await;
    let (admin, editor) = (f.token("root", "admin").await, f.token("ed", "editor").await);
    let silent = "INSERT INTO sexton.instances (id, kind, name, pid, started_at, heartbeat_at, version, ready)
        VALUES (gen_random_uuid(), 'worker', 'w9', 1, now() - interval '1 day', now() - interval '2 hours', '0.0.9', true)";
    sqlx::query(silent).execute(f.console.store().pool()).await.unwrap();
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
