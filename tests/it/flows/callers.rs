//! Programs begin flows in their own transactions.

use sexton_model::retry::{Decision, Usage};
use sexton_store::lease::AttemptFence;
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::Fixture;
use crate::store::settlement;

const CALL: &str = r#"SELECT flow_id FROM sexton.flow('{"name": "f", "key": "k", "members": [
    {"name": "a", "job": "the.job"}, {"name": "b", "job": "the.job", "after": ["a"]}]}')"#;

#[tokio::test]
async fn a_flow_exists_if_its_caller_commits_and_leaves_nothing_otherwise() {
    let f = Fixture::new().await;
    let mut caller = PgConnection::connect(f.rows.db.url()).await.unwrap();
    let mut tx = caller.begin().await.unwrap();
    sqlx::query(CALL).execute(&mut *tx).await.unwrap();
    assert_eq!(f.states().await.len(), 0);
    tx.rollback().await.unwrap();
    let left = "SELECT (SELECT count(*) FROM sexton.flows) + (SELECT count(*) FROM sexton.flow_members)
                + (SELECT count(*) FROM sexton.flow_edges) + (SELECT count(*) FROM sexton.executions)";
    assert_eq!(sqlx::query_scalar::<_, i64>(left).fetch_one(f.pool()).await.unwrap(), 0);
    let mut tx = caller.begin().await.unwrap();
    sqlx::query(CALL).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    f.expect(&[("a", "pending"), ("b", "blocked")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_sessions_with_one_key_begin_one_flow() {
    let f = Fixture::new().await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let url = f.rows.db.url().to_owned();
        calls.spawn(async move {
            let mut caller = PgConnection::connect(&url).await.unwrap();
            sqlx::query_scalar::<_, Uuid>(CALL).fetch_one(&mut caller).await.unwrap()
        });
    }
    let ids: std::collections::HashSet<Uuid> = calls.join_all().await.into_iter().collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(f.states().await.len(), 2);
}

#[tokio::test]
async fn a_caller_cancels_a_flow_and_the_audit_names_it() {
    let f = Fixture::new().await;
    let flow =
        f.begin(&[super::after("a", &[]), super::after("b", &["a"]), super::after("c", &[])]).await;
    f.rows.opened(f.id("c").await, 1, 0).await;
    let calling = sqlx::query_as::<_, (Uuid, i32, Option<i32>)>(
        "SELECT * FROM sexton.cancel_flow($1, 'no need')",
    );
    assert_eq!(calling.bind(flow).fetch_one(f.pool()).await.unwrap(), (flow, 2, Some(1)));
    f.expect(&[("a", "cancelled"), ("b", "cancelled"), ("c", "running")]).await;
    let c = f.id("c").await;
    assert_eq!(f.rows.column(c, "cancel_requested").await.as_deref(), Some("true"));
    let audit = sqlx::query_scalar::<_, i64>(
        "SELECT count(*) FROM sexton.operator_actions WHERE action = 'cancel' AND reason = 'no need'",
    );
    assert_eq!(audit.fetch_one(f.pool()).await.unwrap(), 3);
    let none =
        sqlx::query_as::<_, (Uuid, i32, Option<i32>)>("SELECT * FROM sexton.cancel_flow($1)");
    let unknown = Uuid::now_v7();
    assert_eq!(none.bind(unknown).fetch_one(f.pool()).await.unwrap(), (unknown, 0, None));
}

/// An application's own trigger is as good a caller as any.
#[tokio::test]
async fn an_end_inside_an_application_s_trigger_is_followed() {
    let f = Fixture::new().await;
    f.run("CREATE TABLE public.orders (id int)").await;
    f.run("CREATE FUNCTION public.withdraw() RETURNS trigger LANGUAGE plpgsql AS
           'BEGIN PERFORM sexton.cancel_flow(flow_id) FROM sexton.executions LIMIT 1; RETURN NULL; END'")
        .await;
    f.run("CREATE TRIGGER withdraw AFTER INSERT ON public.orders FOR EACH ROW EXECUTE FUNCTION public.withdraw()").await;
    f.begin(&[super::after("a", &[]), super::after("b", &["a"])]).await;
    f.run("INSERT INTO public.orders VALUES (1)").await;
    f.expect(&[("a", "cancelled"), ("b", "cancelled")]).await;
    assert_eq!(f.open().await, (0, true));
}

#[tokio::test]
async fn a_caller_does_not_cancel_the_flow_of_a_firing() {
    let f = Fixture::new().await;
    f.run("UPDATE sexton.jobs SET flow = '[{\"name\": \"b\", \"job\": \"the.job\", \"after\": [\"start\"]}]'").await;
    let id = f.rows.claim("cron-2027-01-15T08:00:00Z").await;
    let calling = sqlx::query("SELECT sexton.cancel_flow($1)").bind(id.get());
    let error = calling.execute(f.pool()).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().as_deref(), Some("SX010"), "{error}");
    assert_eq!(f.rows.state(id).await, "pending/1");
}

/// Somebody's open transaction holds the flow; a worker's batch does not wait for it, and nothing is lost. `end` is what becomes
/// of the member that runs: a batch of plain successes has a statement of its own.
async fn is_held_up_alone(end: impl Fn(AttemptFence) -> Settlement, becomes: &str) {
    let f = Fixture::new().await;
    let flow = f.begin(&[super::after("a", &[]), super::after("b", &["a"])]).await;
    let other = f.rows.claim("other").await;
    let held = [f.rows.opened(f.id("a").await, 1, 0).await, f.rows.opened(other, 1, 0).await];
    let mut caller = PgConnection::connect(f.rows.db.url()).await.unwrap();
    let cancel = sqlx::query("SELECT sexton.cancel_flow($1)").bind(flow);
    cancel.execute(&mut caller).await.unwrap();
    // What runs has its request since before, so that this transaction holds the flow's row and no execution.
    let mut tx = caller.begin().await.unwrap();
    let again = sqlx::query("SELECT sexton.cancel_flow($1)").bind(flow);
    again.execute(&mut *tx).await.unwrap();
    let ends = held.map(end);
    let settled = settle(f.rows.store(), &ends, super::later(1)).await.unwrap();
    assert_eq!(settled[0], SettleOutcome::Locked);
    assert!(matches!(settled[1], SettleOutcome::Done { .. }));
    tx.commit().await.unwrap();
    f.settle_again(&ends[..1]).await;
    f.expect(&[("a", becomes), ("b", "cancelled")]).await;
    assert_eq!(f.open().await, (0, true));
}

#[tokio::test]
async fn a_caller_s_open_transaction_holds_up_the_ends_of_its_flow_alone() {
    is_held_up_alone(|held| settlement(held, Decision::Succeed), "succeeded").await;
}

#[tokio::test]
async fn so_does_it_where_an_attempt_has_a_result() {
    let with_result = |held| Settlement {
        result: Some(serde_json::json!({"rows": 7})),
        ..settlement(held, Decision::Succeed)
    };
    is_held_up_alone(with_result, "succeeded").await;
}

/// Two workers settle members of the same two flows, each in the other's order: neither waits for the other.
#[tokio::test]
async fn batches_of_the_same_flows_do_not_wait_for_one_another() {
    let f = Fixture::new().await;
    let mut flows = Vec::new();
    for [first, second] in [["a", "b"], ["c", "d"]] {
        f.begin(&[super::after(first, &[]), super::after(second, &[])]).await;
        let (first, second) = (f.id(first).await, f.id(second).await);
        flows.push([f.rows.opened(first, 1, 0).await, f.rows.opened(second, 1, 0).await]);
    }
    let fail = |held| settlement(held, Decision::Fail { used: Usage::default() });
    let succeed = |held| settlement(held, Decision::Succeed);
    let batches = [
        vec![succeed(flows[0][0]), succeed(flows[1][1])],
        vec![succeed(flows[1][0]), fail(flows[0][1])],
    ];
    let store = f.rows.store().clone();
    let mut lock = PgConnection::connect(f.rows.db.url()).await.unwrap();
    let mut holds = lock.begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.flows FOR NO KEY UPDATE").execute(&mut *holds).await.unwrap();
    for batch in &batches {
        let settled = settle(&store, batch, super::later(1)).await.unwrap();
        assert_eq!(settled, [SettleOutcome::Locked, SettleOutcome::Locked], "it waits for nothing");
    }
    holds.commit().await.unwrap();
    let all: Vec<Settlement> = batches.concat();
    let settled = settle(&store, &all, super::later(1)).await.unwrap();
    assert!(settled.iter().all(|one| matches!(one, SettleOutcome::Done { .. })), "{settled:?}");
}

impl Fixture {
    async fn settle_again(&self, ends: &[Settlement]) {
        settle(self.rows.store(), ends, super::later(2)).await.unwrap();
    }
}
