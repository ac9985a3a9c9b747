//! Work that goes on without its client: of each kind a server does only so much at the same time, and other requests find a connection.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use sexton_operations::error::OperationError;
use sexton_operations::jobs::trigger_jobs::{JobOutcome, JobTrigger, trigger_all};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use tokio::time::Instant;

use super::approvals::{approve, discard, people, rule};
use super::trigger_all::{PATIENCE, actor};
use super::{Fixture, eventually};

/// Sessions at the gate.
const AT_THE_GATE: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE state = 'active' AND datname = current_database() AND wait_event = 'PgSleep'";

/// Holds up statements that write into a table until it is opened. They poll for it, so no lock timeout ends them.
pub(super) struct Gate {
    pool: PgPool,
    held: Transaction<'static, Postgres>,
}

impl Gate {
    /// Closes it in front of this table.
    pub(super) async fn close(f: &Fixture, table: &str) -> Self {
        let trigger = format!(
            "CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 WHILE NOT pg_try_advisory_xact_lock_shared(4711) LOOP PERFORM pg_sleep(0.1); END LOOP;
                 RETURN NEW;
             END $$;
             CREATE TRIGGER gate BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION public.gate()"
        );
        let pool = f.console.store().pool().clone();
        sqlx::raw_sql(AssertSqlSafe(trigger)).execute(&pool).await.unwrap();
        let mut held = pool.begin().await.unwrap();
        sqlx::query("SELECT pg_advisory_xact_lock(4711)").execute(&mut *held).await.unwrap();
        Self { pool, held }
    }

    /// Waits until so many stand at it.
    pub(super) async fn is_reached(&self, count: i64) {
        eventually("as many stand at the gate", async || {
            sqlx::query_scalar::<_, i64>(AT_THE_GATE).fetch_one(&self.pool).await.unwrap() == count
        })
        .await;
    }

    /// Lets all through.
    pub(super) async fn open(self) {
        self.held.rollback().await.unwrap();
    }
}

fn detail(refused: &Value) -> &str {
    refused["detail"].as_str().unwrap()
}

#[tokio::test]
async fn a_third_trigger_of_many_jobs_is_refused_while_two_go_on_and_triggers_nothing() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let trigger = async |job: &str, status: u16| {
        let body = json!({"jobs": [job], "key": "evening"}).to_string();
        f.ask(&token, "POST", "/jobs:trigger", &body).await.expect(status)
    };
    let gate = Gate::close(&f, "sexton.executions").await;
    let two = async { tokio::join!(trigger("shop.mail", 200), trigger("shop.charge", 200)) };
    let third = async {
        gate.is_reached(2).await;
        let refused = trigger("billing.invoices", 503).await;
        gate.open().await;
        refused
    };
    let ((one, other), refused) = tokio::join!(two, third);
    assert!(detail(&refused).contains("other requests trigger many jobs"), "{refused}");
    for done in [one, other] {
        assert_eq!(done["items"][0]["outcome"], "created", "{done}");
    }
    // It was sent again, and now there is a place.
    let done = trigger("billing.invoices", 200).await;
    assert_eq!(done["items"][0]["outcome"], "created", "{done}");
}

#[tokio::test]
async fn a_fourth_approval_is_refused_while_three_are_carried_out_and_approves_nothing() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    let mut requests = Vec::new();
    for _ in 0..4 {
        let id = f.console.failed().await;
        requests.push(discard(&f, &ann, id).await);
    }
    let (fourth, three) = requests.split_last().unwrap();
    let gate = Gate::close(&f, "sexton.executions").await;
    let approvals = join_all(three.iter().map(|request| approve(&f, &bob, request, 200)));
    let refused = async {
        gate.is_reached(3).await;
        let refused = approve(&f, &bob, fourth, 503).await;
        gate.open().await;
        refused
    };
    let (done, refused) = tokio::join!(approvals, refused);
    assert!(detail(&refused).contains("nothing was approved"), "{refused}");
    for request in done {
        assert_eq!(request["state"], "carried_out", "{request}");
    }
    let waits = f.console.json(&["approvals", "show", &fourth["id"].to_string()]).await;
    assert_eq!((&waits["state"], &waits["approvals"]), (&json!("waiting"), &json!([])));
    assert_eq!(approve(&f, &bob, fourth, 200).await["state"], "carried_out");
}

#[tokio::test]
async fn as_many_approvals_and_triggers_as_go_on_together_leave_connections_to_other_requests() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    let token = f.token("ann", "operator").await;
    let password = f.account("sue", "viewer").await;
    let mut requests = Vec::new();
    for _ in 0..3 {
        let id = f.console.failed().await;
        requests.push(discard(&f, &ann, id).await);
    }
    let trigger = async |job: &str| {
        let body = json!({"jobs": [job], "key": "evening"}).to_string();
        f.ask(&token, "POST", "/jobs:trigger", &body).await.expect(200)
    };
    let gate = Gate::close(&f, "sexton.executions").await;
    let approvals = join_all(requests.iter().map(|request| approve(&f, &bob, request, 200)));
    let triggers = async { tokio::join!(trigger("shop.mail"), trigger("shop.charge")) };
    // At the same time, so each needs a connection.
    let others = async {
        gate.is_reached(5).await;
        let pause = r#"{"reason": "x"}"#;
        let done = tokio::join!(
            f.log_in("sue", &password),
            f.ask(&token, "POST", "/jobs/billing.invoices/pause", pause)
        );
        gate.open().await;
        done
    };
    let (approved, _, (session, paused)) = tokio::join!(approvals, triggers, others);
    assert_eq!(session.status, 204, "{}", session.body);
    paused.expect(200);
    for request in approved {
        assert_eq!(request["state"], "carried_out", "{request}");
    }
}

#[tokio::test]
async fn a_job_for_which_the_database_does_not_answer_in_time_is_unknown_and_no_other_is_tried() {
    let f = Fixture::new().await;
    let trigger = async |limits: (Instant, Duration)| {
        let jobs = ["billing.invoices", "shop.charge", "shop.mail"].map(str::to_owned).to_vec();
        let options = (Some("evening"), None);
        trigger_all(f.console.store(), jobs, options, &actor(), limits).await.unwrap()
    };
    let gate = Gate::close(&f, "sexton.executions").await;
    let done = trigger((Instant::now(), Duration::from_millis(300))).await;
    let JobOutcome::Unknown(OperationError::Failed(text)) = &done[0].outcome else {
        panic!("{done:?}");
    };
    assert_eq!(text, "the database has not answered in time");
    let is_left = |one: &JobTrigger| matches!(one.outcome, JobOutcome::NotTried);
    assert!(done.len() == 3 && done[1..].iter().all(is_left), "{done:?}");

    gate.open().await;
    // What was given up may still hold its job for a moment; the key makes one execution of each.
    eventually("all have their execution", async || {
        let done = trigger((Instant::now() + PATIENCE, PATIENCE)).await;
        done.iter().all(|one| matches!(one.outcome, JobOutcome::Done(_)))
    })
    .await;
    let listed = f.console.items(&["executions", "list"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 3, "{listed}");
}
