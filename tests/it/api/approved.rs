//! What others have approved is carried out as it was requested, or not at all.

use serde_json::{Value, json};
use sexton_model::approval::{CLAIM_LIFETIME, MAX_WAITING_REQUESTS_OF_PERSON};
use sexton_model::id::ExecutionId;
use sexton_store::approvals::{self, ClaimedRequest, VoteOutcome};
use sexton_store::backfill::{ApprovedBackfill, Backfill, BackfillError, create_batch};
use sexton_store::operator::AuditContext;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use uuid::Uuid;

use super::approvals::{approve, discard, executions_of, people, rule};
use super::turns::Gate;
use super::{Fixture, LOCAL_HOST};

const BACKFILLS: &str = "/jobs/billing.invoices/backfills";
const QUARTER: &str = r#"{"since": "2024-01-01T00:00:00Z", "until": "2024-04-01T00:00:00Z"}"#;

async fn sql(f: &Fixture, statement: &'static str) {
    sqlx::query(statement).execute(f.console.store().pool()).await.unwrap();
}

async fn request(f: &Fixture, cookie: &str, path: &str, body: &str) -> Value {
    f.visit(cookie, "POST", path, body).await.expect(202)
}

/// A backfill that waits, of two batches: 500 firings, and 244.
async fn hourly(f: &Fixture, cookie: &str) -> Value {
    let hourly = "[[job]]\nname = \"a.hourly\"\nschedule = \"0 * * * *\"\ntask = \"work\"\n";
    let apply = ["jobs", "apply", "-f", &f.console.file("hourly.toml", hourly)];
    f.console.run(&apply).await.expect(0);
    rule(f, &["--above", "1"]).await;
    let january = r#"{"since": "2024-01-01T00:00:00Z", "until": "2024-02-01T00:00:00Z"}"#;
    request(f, cookie, "/jobs/a.hourly/backfills", january).await
}

/// The backfill of a request that was claimed, as its process carries it out.
fn approved_backfill(claimed: &ClaimedRequest) -> Backfill<'static> {
    let proposal = &claimed.proposal;
    let job: Uuid = proposal["job_id"].as_str().unwrap().parse().unwrap();
    let revision = proposal["revision"].as_i64().unwrap() as i32;
    let at = |name: &str| proposal[name].as_str().unwrap().parse().unwrap();
    Backfill {
        job: "billing.invoices",
        from: at("since"),
        to: at("until"),
        rate: None,
        allow_overlap: false,
        claimed_by: "host:1",
        approved: Some(ApprovedBackfill { claim: claimed.claim, job, revision }),
        dry_run: false,
    }
}

#[tokio::test]
async fn an_edit_whose_job_verifies_ends_with_the_bulk_that_does_so() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    sql(&f, "UPDATE sexton.jobs SET verify_task = 'charged' WHERE name = 'shop.charge'").await;
    let edit = r#"{"merge": {"customer": 7}, "requeue": true, "reason": "typo"}"#;
    let request = request(&f, &ann, &format!("/failures/{id}/edit"), edit).await;
    let done = approve(&f, &bob, &request, 200).await;
    assert_eq!((&done["state"], &done["bulk_id"]), (&json!("carried_out"), &json!(1)), "{done}");
    assert!(done["outcome"].as_str().unwrap().contains("bulk 1 verifies"), "{done}");
    assert_eq!(f.console.state(id).await, "failed/2", "the question comes first");
    let bulk = f.console.json(&["bulks", "show", "1"]).await["bulk"].clone();
    assert_eq!((&bulk["selected"], &bulk["verify"]), (&json!(1), &json!("task")));
    let written = f.console.audit(id).await.pop().unwrap();
    assert_eq!(written, "edit by account ann because typo (approval 1)");
}

#[tokio::test]
async fn a_requeue_into_another_pool_waits_as_an_edit_and_a_bulk_that_cancels_as_others() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &["--above", "1"]).await;
    let failed = f.console.failed().await;
    let executions = json!([{"id": failed.to_string()}]);
    let bulk =
        json!({"kind": "requeue", "executions": executions, "pool": "default", "force_pool": true})
            .to_string();
    let waits = request(&f, &ann, "/bulks", &bulk).await;
    assert_eq!(waits["proposal"]["pool"], "default");
    assert_eq!(approve(&f, &bob, &waits, 200).await["state"], "carried_out");

    let waiting = [f.console.trigger("shop.mail").await, f.console.trigger("shop.mail").await];
    let cancel = r#"{"kind": "cancel", "filter": {"job": "shop.mail"}}"#;
    let waits = request(&f, &ann, "/bulks", cancel).await;
    assert_eq!((&waits["kind"], &waits["proposal"]["count"]), (&json!("bulk_cancel"), &json!(2)));
    // What was claimed since is not touched, and does not count.
    f.console.trigger("shop.mail").await;
    let done = approve(&f, &bob, &waits, 200).await;
    assert_eq!(done["state"], "carried_out", "{done}");
    let bulk = f.console.json(&["bulks", "show", &done["bulk_id"].to_string()]).await;
    let bulk = &bulk["bulk"];
    assert_eq!(bulk["kind"], "cancel");
    assert_eq!(f.console.state(waiting[0]).await, "pending/1", "a scheduler carries it out");
    let one = json!({"kind": "cancel", "executions": [{"id": waiting[1].to_string()}]});
    f.visit(&ann, "POST", "/bulks", &one.to_string()).await.expect(201);
}

#[tokio::test]
async fn a_bulk_that_would_take_executions_of_other_jobs_is_not_created() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    let [seen, other] = [f.console.failed().await, f.console.failed().await];
    let of_mail = "UPDATE sexton.executions SET pool = 'slow', job_id = (SELECT id FROM sexton.jobs WHERE name = 'shop.mail')
        WHERE id = $1";
    let to_pool =
        "UPDATE sexton.executions SET pool = CASE WHEN id = $1 THEN 'slow' ELSE 'default' END";
    let pool = f.console.store().pool();
    sqlx::query(of_mail).bind(other.get()).execute(pool).await.unwrap();
    sqlx::query(to_pool).bind(seen.get()).execute(pool).await.unwrap();
    let bulk = r#"{"kind": "discard", "filter": {"pool": "slow"}, "reason": "x"}"#;
    let waits = request(&f, &ann, "/bulks", bulk).await;
    assert_eq!(waits["proposal"]["jobs"], json!([["shop.charge", 1]]));
    sqlx::query(to_pool).bind(other.get()).execute(pool).await.unwrap();
    let failed = approve(&f, &bob, &waits, 200).await;
    assert_eq!(failed["state"], "failed");
    assert!(failed["outcome"].as_str().unwrap().contains("of other jobs"), "{failed}");
    assert_eq!(f.console.items(&["bulks", "list"]).await, json!([]));
}

#[tokio::test]
async fn a_backfill_of_a_job_that_was_changed_since_makes_nothing() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &["--above", "1"]).await;
    let waits = request(&f, &ann, BACKFILLS, QUARTER).await;
    let other = "[[job]]\nname = \"billing.invoices\"\nschedule = \"0 1 1 * *\"\ntask = \"report\"\nparams = { customer = 2 }\n";
    let file = f.console.file("changed.toml", other);
    f.console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let failed = approve(&f, &bob, &waits, 200).await;
    assert_eq!(failed["state"], "failed");
    assert!(failed["outcome"].as_str().unwrap().contains("was changed since"), "{failed}");
    assert_eq!(executions_of(&f, "billing.invoices").await, 0);
}

#[tokio::test]
async fn a_backfill_is_rejected_only_when_nobody_carries_it_out_and_then_makes_nothing_more() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &["--above", "1"]).await;
    let waits = request(&f, &ann, BACKFILLS, QUARTER).await;
    let (id, store) = (waits["id"].as_i64().unwrap(), f.console.store());
    let by = AuditContext { actor: "account bob", reason: Some("no") };
    let voted = approvals::approve(store, id, 2, &["bob".to_owned()], by, None).await.unwrap();
    assert_eq!(voted, VoteOutcome::Recorded);
    let claimed = approvals::claim(store, id, None).await.unwrap().unwrap();
    assert!(approvals::claim(store, id, None).await.unwrap().is_none(), "it is claimed once");
    let backfill = approved_backfill(&claimed);
    let batch =
        || create_batch(store, backfill, None, || ExecutionId::new(Uuid::now_v7()), by, None);
    // As if its process had paused for longer than a claim lasts, and woken up just in time: a batch is a sign of life.
    let lapse = "UPDATE sexton.approval_requests SET claimed_at = now() - interval '119 seconds'";
    sql(&f, lapse).await;
    let one = Backfill { to: "2024-02-01T00:00:00Z".parse().unwrap(), ..backfill };
    let fresh = || ExecutionId::new(Uuid::now_v7());
    create_batch(store, one, None, fresh, by, None).await.unwrap();
    assert_eq!(executions_of(&f, "billing.invoices").await, 1);
    let renewed = "SELECT now() - claimed_at < interval '1 minute' FROM sexton.approval_requests";
    assert!(sqlx::query_scalar::<_, bool>(renewed).fetch_one(store.pool()).await.unwrap());
    let reject = format!("/approvals/{id}/reject");
    let busy = f.visit(&bob, "POST", &reject, r#"{"reason": "no"}"#).await.expect(409);
    assert!(busy["detail"].as_str().unwrap().contains("being carried out"), "{busy}");

    assert_eq!(CLAIM_LIFETIME.num_minutes(), 2);
    sql(&f, "UPDATE sexton.approval_requests SET claimed_at = now() - interval '2 minutes'").await;
    let rejected = f.visit(&bob, "POST", &reject, r#"{"reason": "no"}"#).await.expect(200);
    assert_eq!(rejected["outcome"], "no (the firings that were made before stay)");
    let refused = batch().await.unwrap_err();
    assert!(matches!(refused, BackfillError::NotClaimed(found) if found == id), "{refused}");
    assert_eq!(executions_of(&f, "billing.invoices").await, 1);
}

#[tokio::test]
async fn a_client_who_leaves_does_not_stop_what_is_being_carried_out() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    let daily = "[[job]]\nname = \"a.daily\"\nevery = \"24h\"\ntask = \"work\"\nmisfire = { policy = \"skip\" }\n";
    let file = f.console.file("daily.toml", daily);
    f.console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    rule(&f, &[]).await;
    // Ten batches.
    let range = r#"{"since": "2010-01-01T00:00:00Z", "until": "2023-09-09T00:00:00Z"}"#;
    let waits = request(&f, &ann, "/jobs/a.daily/backfills", range).await;
    let count = waits["proposal"]["count"].as_i64().unwrap();
    let path = format!("/api/v1/approvals/{}/approve", waits["id"]);
    let head = [
        &format!("POST {path} HTTP/1.1"),
        LOCAL_HOST,
        &bob,
        "Sec-Fetch-Site: same-origin",
        "Content-Type: application/json",
        "Content-Length: 2",
    ];
    let gate = Gate::close(&f, "sexton.executions").await;
    let mut stream = TcpStream::connect(f.address).await.unwrap();
    let text = format!("{}\r\n\r\n{{}}", head.join("\r\n"));
    stream.write_all(text.as_bytes()).await.unwrap();
    // Nothing is made before the client has left.
    gate.is_reached(1).await;
    drop(stream);
    assert_eq!(executions_of(&f, "a.daily").await, 0);
    gate.open().await;
    super::eventually("all are made", async || executions_of(&f, "a.daily").await == count).await;
    let path = format!("/approvals/{}", waits["id"]);
    super::eventually("the request ends", async || {
        f.visit(&bob, "GET", &path, "").await.expect(200)["state"] == "carried_out"
    })
    .await;
}

#[tokio::test]
async fn one_person_does_not_take_the_place_of_others_and_an_equal_request_is_the_same() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    let [one, other] = [f.console.failed().await, f.console.failed().await];
    let first = discard(&f, &ann, one).await;
    assert_eq!(discard(&f, &ann, one).await["id"], first["id"], "it waits already");
    assert_ne!(discard(&f, &bob, one).await["id"], first["id"], "that one is of another person");
    let fill = format!(
        "INSERT INTO sexton.approval_requests (kind, proposal, digest, people, rules, requested_by, requested_by_names,
             requested_at, expires_at)
         SELECT kind, proposal, md5(n::text) || md5(n::text), people, rules, requested_by, requested_by_names, requested_at, expires_at
         FROM sexton.approval_requests, generate_series(2, {MAX_WAITING_REQUESTS_OF_PERSON}) n WHERE id = 1"
    );
    sqlx::query(sqlx::AssertSqlSafe(fill)).execute(f.console.store().pool()).await.unwrap();
    let path = format!("/failures/{other}/discard");
    let refused = f.visit(&ann, "POST", &path, r#"{"reason": "x"}"#).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("of your requests wait"), "{refused}");
    discard(&f, &bob, other).await;
    assert_eq!(discard(&f, &ann, one).await["id"], first["id"], "an equal one is no further one");
    // Whenever it was previewed.
    let bulk = r#"{"kind": "discard", "all": true, "reason": "x"}"#;
    let first = request(&f, &bob, "/bulks", bulk).await;
    assert_eq!(request(&f, &bob, "/bulks", bulk).await["id"], first["id"]);
}

#[tokio::test]
async fn lists_leave_out_what_can_be_large_and_the_audit_has_a_digest() {
    let f = Fixture::new().await;
    let [ann, ..] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    let values: Vec<String> = (0..150).map(|n| format!("\"place{n}\": {n}")).collect();
    let edit =
        format!(r#"{{"merge": {{{}}}, "requeue": false, "reason": "typo"}}"#, values.join(", "));
    let waits = request(&f, &ann, &format!("/failures/{id}/edit"), &edit).await;
    assert_eq!(waits["proposal"]["params"]["place149"], 149);
    assert_eq!(waits["proposal"]["changes"].as_array().unwrap().len(), 100);
    let listed = f.visit(&ann, "GET", "/approvals", "").await.expect(200);
    let proposal = &listed["items"][0]["proposal"];
    assert_eq!((&proposal["params"], &proposal["change_count"]), (&Value::Null, &json!(150)));
    let shown = f.console.run(&["approvals", "list"]).await.expect(0).text();
    assert!(shown.contains("and 145 more"), "{shown}");
    let audit = f.console.items(&["audit", "list", "--action", "request_approval"]).await;
    let after = &audit[0]["after"];
    assert_eq!((after["digest"].as_str().unwrap().len(), &after["proposal"]), (64, &Value::Null));
    // A short secret could be found by the digest of all params.
    assert_eq!((&waits["proposal"]["seen"], &proposal["seen"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_backfill_that_cannot_go_on_ends_its_request_with_what_was_made() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    let waits = hourly(&f, &ann).await;
    // Retention removes executions behind the first batch.
    let pruned = "
        CREATE FUNCTION public.prune() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN UPDATE sexton.retention SET pruned_before = '2024-02-01T00:00:00Z'; RETURN NULL; END $$;
        CREATE TRIGGER prune AFTER INSERT ON sexton.executions EXECUTE FUNCTION public.prune()";
    sqlx::raw_sql(pruned).execute(f.console.store().pool()).await.unwrap();
    let failed = approve(&f, &bob, &waits, 200).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    let outcome = failed["outcome"].as_str().unwrap();
    for text in ["removed by retention", "500 executions were made before, and stay"] {
        assert!(outcome.contains(text), "{text}: {failed}");
    }
    assert_eq!(executions_of(&f, "a.hourly").await, 500);
}

#[tokio::test]
async fn a_backfill_that_another_process_cannot_go_on_with_says_that_what_was_made_stays() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &["--above", "1"]).await;
    let waits = request(&f, &ann, BACKFILLS, QUARTER).await;
    let (id, store) = (waits["id"].as_i64().unwrap(), f.console.store());
    let by = AuditContext { actor: "account bob", reason: None };
    approvals::approve(store, id, 2, &["bob".to_owned()], by, None).await.unwrap();
    let claimed = approvals::claim(store, id, None).await.unwrap().unwrap();
    let january =
        Backfill { to: "2024-02-01T00:00:00Z".parse().unwrap(), ..approved_backfill(&claimed) };
    let fresh = || ExecutionId::new(Uuid::now_v7());
    create_batch(store, january, None, fresh, by, None).await.unwrap();
    assert_eq!(executions_of(&f, "billing.invoices").await, 1);
    // Its process has ended. The next one makes nothing.
    sql(&f, "UPDATE sexton.approval_requests SET claimed_at = now() - interval '2 minutes'").await;
    sql(&f, "UPDATE sexton.retention SET pruned_before = '2024-02-01T00:00:00Z'").await;
    let failed = approve(&f, &bob, &waits, 200).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    let outcome = failed["outcome"].as_str().unwrap();
    for text in ["removed by retention", "firings that another process made before stay"] {
        assert!(outcome.contains(text), "{text}: {failed}");
    }
    assert_eq!(executions_of(&f, "billing.invoices").await, 1);
}

#[tokio::test]
async fn a_batch_is_made_only_while_enough_people_have_approved_it() {
    let f = Fixture::new().await;
    let [ann, ..] = people(&f).await;
    rule(&f, &["--above", "1"]).await;
    let waits = request(&f, &ann, BACKFILLS, QUARTER).await;
    let (id, store) = (waits["id"].as_i64().unwrap(), f.console.store());
    let by = AuditContext { actor: "account bob", reason: None };
    approvals::approve(store, id, 2, &["bob".to_owned()], by, None).await.unwrap();
    let claimed = approvals::claim(store, id, None).await.unwrap().unwrap();
    let backfill = approved_backfill(&claimed);
    let batch =
        || create_batch(store, backfill, None, || ExecutionId::new(Uuid::now_v7()), by, None);
    // A stricter rule raised it while the process was silent.
    sql(&f, "UPDATE sexton.approval_requests SET people = 3").await;
    assert!(matches!(batch().await.unwrap_err(), BackfillError::NotClaimed(_)));
    // It has expired while the process was silent.
    sql(
        &f,
        "UPDATE sexton.approval_requests SET people = 2, requested_at = now() - interval '2 days',
        expires_at = now() - interval '1 hour', claimed_at = now() - interval '1 hour'",
    )
    .await;
    assert!(matches!(batch().await.unwrap_err(), BackfillError::NotClaimed(_)));
    assert_eq!(executions_of(&f, "billing.invoices").await, 0);
    // It expires while it is carried out.
    sql(&f, "UPDATE sexton.approval_requests SET claimed_at = now()").await;
    batch().await.unwrap();
    assert_eq!(executions_of(&f, "billing.invoices").await, 3);
}

#[tokio::test]
async fn a_request_whose_next_batch_needs_another_person_waits_for_that_person() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    let waits = hourly(&f, &ann).await;
    // As if the process was silent for an hour behind the first one, and a stricter rule came.
    let stricter = "
        CREATE FUNCTION public.stricter() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN UPDATE sexton.approval_requests SET people = 3, claimed_at = now() - interval '1 hour' WHERE people = 2; RETURN NULL; END $$;
        CREATE TRIGGER stricter AFTER INSERT ON sexton.executions EXECUTE FUNCTION public.stricter()";
    sqlx::raw_sql(stricter).execute(f.console.store().pool()).await.unwrap();
    let refused = approve(&f, &bob, &waits, 503).await;
    assert!(refused["detail"].as_str().unwrap().contains("needs more people"), "{refused}");
    let waiting = f.console.json(&["approvals", "show", "1"]).await;
    assert_eq!((&waiting["state"], &waiting["outcome"]), (&json!("waiting"), &Value::Null));
    assert_eq!(executions_of(&f, "a.hourly").await, 500);
    let done = approve(&f, &eve, &waits, 200).await;
    assert_eq!(done["state"], "carried_out", "{done}");
    assert_eq!(executions_of(&f, "a.hourly").await, 744);
}
