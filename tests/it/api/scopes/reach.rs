//! What is restricted to jobs reaches no other through its jobs: by a flow, a lock's row, an approval, or labels that change.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{count, restricted};
use crate::api::Fixture;

/// A file with one job, whose flow has a member of another.
fn with_member(job: &str, member: &str, labels: &str) -> String {
    format!(
        "[[job]]\nname = \"{job}\"\ntask = \"work\"\n{labels}\n[[flow]]\njob = \"{job}\"\n[[flow.member]]\nname = \"next\"\njob = \"{member}\"\nafter = [\"start\"]\n"
    )
}

async fn apply(f: &Fixture, token: &str, text: &str, status: u16) -> Value {
    let body = json!({"file": "my.toml", "text": text}).to_string();
    f.ask(token, "POST", "/jobs:apply", &body).await.expect(status)
}

#[tokio::test]
async fn a_flow_has_no_members_of_other_jobs() {
    let f = Fixture::new().await;
    let token = restricted(&f, "team", "editor", "billing.*").await;
    let other = with_member("billing.close", "shop.charge", "");
    let refused = apply(&f, &token, &other, 403).await;
    let why = "this concerns the job shop.charge, as a member of the flow of billing.close";
    assert!(refused["detail"].as_str().unwrap().contains(why), "{refused}");
    assert_eq!(count(&f, "jobs").await, 3);
    // A job that is there gets none, either.
    apply(&f, &token, &with_member("billing.close", "billing.invoices", ""), 200).await;
    apply(&f, &token, &other, 403).await;
    let shown = f.get(&token, "/jobs/billing.close").await.expect(200);
    assert_eq!(shown["flow"][0]["job"], "billing.invoices", "{shown}");
    // What somebody else has set up stays, while the job is changed otherwise.
    let admin = f.token("root", "admin").await;
    apply(&f, &admin, &other, 200).await;
    f.ask(&token, "POST", "/jobs/billing.close/pause", r#"{"reason": "x"}"#).await.expect(200);
    let labels = with_member("billing.close", "shop.charge", "labels = { a = \"b\" }");
    apply(&f, &token, &labels, 200).await;
}

#[tokio::test]
async fn members_of_a_flow_may_be_made_with_it_whose_labels_are_those_of_the_scope() {
    let f = Fixture::new().await;
    let token = restricted(&f, "team", "editor", "team=billing").await;
    let mine = "labels = { team = \"billing\" }";
    // The member comes behind, in the same call.
    let flow = with_member("a.close", "a.next", mine);
    let member = format!("[[job]]\nname = \"a.next\"\ntask = \"work\"\n{mine}\n");
    apply(&f, &token, &format!("{flow}{member}"), 200).await;
    apply(&f, &token, &with_member("a.other", "shop.charge", mine), 403).await;
}

#[tokio::test]
async fn a_lock_row_of_others_is_neither_shared_nor_broken() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let token = restricted(&f, "team", "operator", "billing.*").await;
    let editor = restricted(&f, "editors", "editor", "billing.*").await;
    let job = |name: &str, row: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\ntask = \"work\"\nlock = {{ row = \"{row}\", at_most = \"5m\" }}\n"
        )
    };
    apply(&f, &admin, &job("shop.stock", "stock"), 200).await;
    let refused = apply(&f, &editor, &job("billing.stock", "stock"), 403).await;
    let why = "this concerns the lock row stock of the job shop.stock";
    assert!(refused["detail"].as_str().unwrap().contains(why), "{refused}");
    apply(&f, &editor, &job("billing.stock", "mine"), 200).await;
    // One whose first job is billing.stock, one of others alone, one of no job, and one that is billing's.
    apply(&f, &admin, &format!("{}{}", job("billing.a", "both"), job("shop.b", "both")), 200).await;
    for row in ["both", "stock", "of_nobody", "mine"] {
        let insert = "INSERT INTO sexton.lock_rows (name, locked_by, locked_at, lock_until)
            VALUES ($1, 'host-7', timezone('UTC', now()), timezone('UTC', now()) + interval '1 hour')
            ON CONFLICT (name) DO UPDATE SET locked_by = excluded.locked_by, lock_until = excluded.lock_until";
        sqlx::query(insert).bind(row).execute(f.console.store().pool()).await.unwrap();
        let status = if row == "mine" { 200 } else { 403 };
        let path = format!("/locks/{row}/break");
        let broken = f.ask(&token, "POST", &path, r#"{"reason": "x"}"#).await;
        assert_eq!(broken.status, status, "{row}: {}", broken.body);
    }
    // What a service elsewhere has, no job of the team's takes; nor does it hold longer what it shares by somebody else's decision.
    let refused = apply(&f, &editor, &job("billing.stock", "of_nobody"), 403).await;
    assert!(
        refused["detail"].as_str().unwrap().contains("of_nobody, which something else has"),
        "{refused}"
    );
    apply(&f, &editor, &job("billing.next", "mine"), 200).await;
    let longer = job("billing.a", "both").replace("5m", "9d");
    apply(&f, &editor, &longer, 403).await;
    let held = "SELECT count(*) FROM sexton.lock_rows WHERE lock_until > timezone('UTC', now())";
    let held: i64 = sqlx::query_scalar(held).fetch_one(f.console.store().pool()).await.unwrap();
    assert_eq!(held, 3);
}

#[tokio::test]
async fn a_flow_of_others_is_not_cancelled_even_if_no_member_ends_by_that() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let token = restricted(&f, "team", "operator", "billing.*").await;
    apply(&f, &admin, &with_member("shop.close", "shop.mail", ""), 200).await;
    let started = f.console.json(&["jobs", "trigger", "shop.close"]).await;
    let id: Uuid = started["id"].as_str().unwrap().parse().unwrap();
    // Its members cannot be made, and its first one waits no more: a cancel gives the others up.
    let pool = f.console.store().pool();
    let gone = "UPDATE sexton.flows SET to_make = jsonb_set(to_make, '{0,job}', '\"no.job\"')";
    sqlx::query(gone).execute(pool).await.unwrap();
    let failed = "UPDATE sexton.executions SET state = 'failed', outcome = 'failure', next_attempt_at = NULL,
        finished_at = now(), error_class = 'x', error_message = 'x' WHERE id = $1";
    sqlx::query(failed).bind(id).execute(pool).await.unwrap();
    let path = format!("/flows/{id}/cancel");
    f.ask(&token, "POST", &path, r#"{"reason": "x"}"#).await.expect(403);
    let to_make = "SELECT to_make IS NOT NULL FROM sexton.flows";
    assert!(sqlx::query_scalar::<_, bool>(to_make).fetch_one(pool).await.unwrap());
    f.ask(&admin, "POST", &path, r#"{"reason": "x"}"#).await.expect(200);
    assert!(!sqlx::query_scalar::<_, bool>(to_make).fetch_one(pool).await.unwrap());
    let audit = f.console.json(&["audit", "list", "--action", "cancel_flow"]).await;
    assert_eq!(audit["items"][0]["execution_id"], json!(id), "{audit}");
}

#[tokio::test]
async fn a_bulk_that_waits_is_approved_only_by_who_may_change_all_that_it_selects() {
    let f = Fixture::new().await;
    f.console.run(&["approvals", "rules", "set", "all", "--above", "1"]).await.expect(0);
    for _ in 0..2 {
        f.console.failed().await;
    }
    let by = async |name: &str, only: &str| {
        let create = ["--json", "tokens", "create", name, "--role", "editor", "--only-jobs", only];
        let created = f.console.run_with(&create, &[("USER", name)], "").await.expect(0);
        let created: Value = serde_json::from_str(&created.text()).unwrap();
        created["token"].as_str().unwrap().to_owned()
    };
    let (narrow, wide) = (by("ann", "shop.charge*").await, by("bob", "shop.*").await);
    let admin = f.token("root", "admin").await;
    // All of them are of shop.charge now, but the bulk takes what the filter selects.
    let all = json!({"kind": "requeue", "filter": {"job_prefix": "shop."}}).to_string();
    let request = f.ask(&admin, "POST", "/bulks", &all).await.expect(202);
    let approve = format!("/approvals/{}/approve", request["id"]);
    f.ask(&narrow, "POST", &approve, "{}").await.expect(403);
    let done = f.ask(&wide, "POST", &approve, "{}").await.expect(200);
    assert_eq!(done["state"], "carried_out", "{done}");
    let bulk = f.get(&admin, "/bulks/1").await.expect(200);
    assert_eq!(bulk["bulk"]["selector"]["filter"]["job_prefix"], "shop.", "{bulk}");
    // What a restricted caller requests is narrowed, and stays so when somebody else approves it.
    let all = json!({"kind": "discard", "all": true, "reason": "x"}).to_string();
    let request = f.ask(&narrow, "POST", "/bulks", &all).await.expect(202);
    let approve = format!("/approvals/{}/approve", request["id"]);
    let done = f.ask(&admin, "POST", &approve, "{}").await.expect(200);
    assert_eq!(done["state"], "carried_out", "{done}");
    let bulk = f.get(&admin, "/bulks/2").await.expect(200);
    assert_eq!(bulk["bulk"]["selector"]["filter"]["job_prefix"], "shop.charge", "{bulk}");
}

#[tokio::test]
async fn a_job_that_has_another_label_since_is_no_more_in_the_scope() {
    let f = Fixture::new().await;
    let token = restricted(&f, "team", "operator", "team=billing").await;
    let relabel = async |team: &str| {
        let label = "UPDATE sexton.jobs SET labels = jsonb_build_object('team', $1::text) WHERE name = 'shop.charge'";
        sqlx::query(label).bind(team).execute(f.console.store().pool()).await.unwrap();
    };
    relabel("billing").await;
    let id = f.console.failed().await;
    relabel("shop").await;
    let requeue = format!("/failures/{id}/requeue");
    f.ask(&token, "POST", &requeue, "{}").await.expect(403);
    relabel("billing").await;
    f.ask(&token, "POST", &requeue, "{}").await.expect(200);
}

#[tokio::test]
async fn a_deleted_job_stays_that_of_others_and_frees_its_name() {
    let f = Fixture::new().await;
    let label = async |team: &str, job: &str| {
        let label =
            "UPDATE sexton.jobs SET labels = jsonb_build_object('team', $1::text) WHERE name = $2";
        sqlx::query(label).bind(team).bind(job).execute(f.console.store().pool()).await.unwrap();
    };
    let id = f.console.failed().await;
    label("shop", "shop.charge").await;
    f.console.run(&["jobs", "delete", "shop.charge", "--yes", "--reason", "x"]).await.expect(0);
    let token = restricted(&f, "team", "editor", "team=billing").await;
    let requeue = format!("/failures/{id}/requeue");
    let refused = f.ask(&token, "POST", &requeue, "{}").await.expect(403);
    assert!(refused["detail"].as_str().unwrap().contains("the job shop.charge"), "{refused}");
    // The name is another job's now.
    let job = json!({"name": "shop.charge", "task": "work", "labels": {"team": "billing"}});
    f.ask(&token, "POST", "/jobs", &job.to_string()).await.expect(201);
    f.ask(&token, "POST", "/enqueue", r#"{"job": "shop.charge"}"#).await.expect(200);
    f.ask(&token, "POST", &requeue, "{}").await.expect(403);
}

#[tokio::test]
async fn an_incident_of_a_failure_group_is_nobodys_though_a_job_of_the_scope_failed_last() {
    let f = Fixture::new().await;
    let token = restricted(&f, "team", "operator", "billing.*").await;
    let silence = json!({"for_s": 3600, "reason": "x"}).to_string();
    for (name, kind, job, status) in [
        ("billing.invoices", "job", "billing.invoices", 200),
        ("shop.charge", "job", "shop.charge", 403),
        ("abcdef0123456789", "group", "billing.invoices", 403),
    ] {
        f.console.incident(name, "high", "open", 60).await;
        let of = "UPDATE sexton.incidents SET subject_kind = $2, job_id = (SELECT id FROM sexton.jobs WHERE name = $3)
            WHERE name = $1 RETURNING id";
        let of = sqlx::query_scalar::<_, Uuid>(of).bind(name).bind(kind).bind(job);
        let id = of.fetch_one(f.console.store().pool()).await.unwrap();
        let answer = f.ask(&token, "POST", &format!("/incidents/{id}/silence"), &silence).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.body);
    }
}

#[tokio::test]
async fn held_firings_of_all_jobs_are_decided_by_nobody_who_is_restricted() {
    let f = Fixture::new().await;
    let token = restricted(&f, "team", "operator", "billing.*").await;
    let jump = "INSERT INTO sexton.holds (reason, last_seen, noticed_at, noticed_by)
        VALUES ('forward', now() - interval '2 days', now(), 'test:1')";
    let held = "INSERT INTO sexton.held_firings (job_id, first_firing, last_firing, count, held_at)
        SELECT id, '2024-02-01T01:00:00Z', '2024-02-01T01:00:00Z', 1, '2024-02-01T01:05:00Z' FROM sexton.jobs
        WHERE name = 'billing.invoices'";
    for statement in [jump, held] {
        sqlx::query(statement).execute(f.console.store().pool()).await.unwrap();
    }
    // Only its own are held, and yet the hold is everybody's: nothing is done before that is refused.
    let all = json!({"decision": "discard"}).to_string();
    let refused = f.ask(&token, "POST", "/catch-up", &all).await.expect(403);
    assert!(refused["detail"].as_str().unwrap().contains("name the jobs"), "{refused}");
    assert_eq!(count(&f, "held_firings").await, 1);
    let both =
        json!({"decision": "discard", "jobs": ["billing.invoices", "shop.charge"]}).to_string();
    f.ask(&token, "POST", "/catch-up", &both).await.expect(403);
    assert_eq!(count(&f, "held_firings").await, 1);
}
