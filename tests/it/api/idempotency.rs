//! POST requests that are sent again with their `Idempotency-Key`.

use serde_json::{Value, json};

use super::{Answer, Fixture};

/// Far longer than anything here takes.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(1);
const KEY: &str = "Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324";

async fn post(f: &Fixture, token: &str, path: &str, key: &str, body: &Value) -> Answer {
    f.ask_with(token, ("POST", path), &[key], &body.to_string()).await
}

async fn run(f: &Fixture, statement: &'static str) {
    sqlx::query(statement).execute(f.console.store().pool()).await.unwrap();
}

async fn executions(f: &Fixture) -> usize {
    f.console.json(&["executions", "list"]).await["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_carried_out_once_and_answered_as_before() {
    let f = Fixture::new().await;
    let (ann, bob) = (f.token("ann", "operator").await, f.token("bob", "operator").await);
    let path = "/jobs/shop.mail/trigger";
    let body = json!({"reason": "once"});
    let first = post(&f, &ann, path, KEY, &body).await;
    assert_eq!(first.header("idempotent-replayed"), None);
    let first = first.expect(200);
    let again = post(&f, &ann, path, KEY, &body).await;
    assert!(again.has("idempotent-replayed: true"), "{}", again.head);
    assert!(again.has("content-type: application/json"), "{}", again.head);
    assert_eq!(again.expect(200), first);
    assert_eq!(executions(&f).await, 1);
    let other = post(&f, &ann, path, KEY, &json!({"reason": "another"})).await.expect(422);
    assert_eq!(other["errors"][0]["parameter"], "Idempotency-Key");
    post(&f, &ann, "/jobs/shop.charge/trigger", KEY, &body).await.expect(422);
    // Everybody has keys of his own.
    post(&f, &bob, path, KEY, &body).await.expect(200);
    assert_eq!(executions(&f).await, 2);
    run(&f, "UPDATE sexton.request_keys SET created_at = created_at - interval '24 hours'").await;
    let later = post(&f, &ann, path, KEY, &body).await;
    assert_eq!(later.header("idempotent-replayed"), None);
    assert_ne!(later.expect(200)["execution_id"], first["execution_id"]);
}

#[tokio::test]
async fn of_many_equal_requests_at_the_same_time_one_is_carried_out() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let body = json!({});
    let all = (0..12).map(|_| post(&f, &token, "/jobs/shop.mail/trigger", KEY, &body));
    let answers = futures_util::future::join_all(all).await;
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert!(statuses.iter().all(|status| matches!(status, 200 | 409)), "{statuses:?}");
    assert!(statuses.contains(&200));
    for answer in answers.iter().filter(|answer| answer.status == 409) {
        assert_eq!(answer.header("retry-after"), Some("1"), "{}", answer.body);
    }
    assert_eq!(executions(&f).await, 1);
}

#[tokio::test]
async fn a_client_that_leaves_gets_the_answer_when_it_comes_again() {
    use tokio::io::AsyncWriteExt as _;
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    f.console.incident("backup", "high", "open", 60).await;
    let listed = f.get(&token, "/incidents").await.expect(200);
    let path = format!("/incidents/{}/acknowledge", listed["items"][0]["id"].as_str().unwrap());
    // Its row is locked, so that the request waits.
    let mut tx = f.console.store().pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.incidents FOR UPDATE").execute(&mut *tx).await.unwrap();
    let mut stream = tokio::net::TcpStream::connect(f.address).await.unwrap();
    let body = r#"{"reason": "on it"}"#;
    let request = format!(
        "POST /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         {KEY}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    // On another connection: a transaction sees the sessions as they were when it first looked.
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let pool = f.console.store().pool();
    let waits = async {
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(pool).await.unwrap() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("it waits for the lock");
    drop(stream);
    post(&f, &token, &path, KEY, &json!({"reason": "another"})).await.expect(422);
    let again = async || f.ask_with(&token, ("POST", &path), &[KEY], body).await;
    let in_flight = again().await;
    assert_eq!(in_flight.header("retry-after"), Some("1"), "{}", in_flight.body);
    in_flight.expect(409);
    tx.rollback().await.unwrap();
    let answered = async {
        loop {
            let answer = again().await;
            if answer.status != 409 {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(PATIENCE, answered).await.expect("it goes on");
    assert!(answer.has("idempotent-replayed: true"), "{}", answer.head);
    assert_eq!(answer.expect(200)["acknowledged_by"], "token ann");
}

#[tokio::test]
async fn a_refused_request_frees_its_key_and_one_whose_end_is_unknown_keeps_it() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    post(&f, &token, "/jobs/shop.mail/pause", KEY, &json!({})).await.expect(400);
    post(&f, &token, "/jobs/no.such/trigger", KEY, &json!({})).await.expect(404);
    let body = json!({"reason": "test"});
    post(&f, &token, "/jobs/shop.mail/pause", KEY, &body).await.expect(200);
    // As after a server's end in between.
    run(&f, "UPDATE sexton.request_keys SET finished_at = NULL, status = NULL, headers = NULL, body = NULL, created_at = now() - interval '3 minutes'").await;
    let unknown = post(&f, &token, "/jobs/shop.mail/pause", KEY, &body).await;
    assert_eq!(unknown.header("retry-after"), None);
    assert!(unknown.expect(409)["detail"].as_str().unwrap().contains("unknown"));
    run(&f, "UPDATE sexton.request_keys SET finished_at = now(), status = 503").await;
    let failed = post(&f, &token, "/jobs/shop.mail/pause", KEY, &body).await.expect(409);
    assert!(failed["detail"].as_str().unwrap().contains("503"), "{failed}");
    for wrong in ["Idempotency-Key: a b", "Idempotency-Key:", &format!("{KEY}\r\n{KEY}")] {
        let refused =
            post(&f, &token, "/jobs/shop.mail/trigger", wrong, &json!({})).await.expect(400);
        assert_eq!(refused["errors"][0]["parameter"], "Idempotency-Key", "{wrong}");
    }
    assert_eq!(executions(&f).await, 0);
    let nobody = f.send("POST", "/jobs/shop.mail/trigger", &["Host: x", KEY], "").await;
    nobody.expect(401);
}

#[tokio::test]
async fn a_secret_and_a_long_answer_are_not_kept_and_the_key_says_so() {
    let f = Fixture::new().await;
    let token = f.token("root", "admin").await;
    let new = json!({"name": "ci", "role": "viewer"});
    let created = post(&f, &token, "/tokens", KEY, &new).await.expect(201);
    let again = post(&f, &token, "/tokens", KEY, &new).await.expect(409);
    assert!(again["detail"].as_str().unwrap().contains("carried out with 201"), "{again}");
    let kept: Vec<Option<Vec<u8>>> = sqlx::query_scalar("SELECT body FROM sexton.request_keys")
        .fetch_all(f.console.store().pool())
        .await
        .unwrap();
    assert_eq!(kept, [None], "{}", created["token"]);
    let preview = "Idempotency-Key: long";
    let range =
        json!({"since": "1980-01-01T00:00:00Z", "until": "2024-01-01T00:00:00Z", "dry_run": true});
    let path = "/jobs/billing.invoices/backfills";
    let long = post(&f, &token, path, preview, &range).await.expect(200);
    assert!(long.to_string().len() > 64 * 1024, "{}", long.to_string().len());
    let again = post(&f, &token, path, preview, &range).await.expect(409);
    assert!(again["detail"].as_str().unwrap().contains("64 KiB"), "{again}");
}
