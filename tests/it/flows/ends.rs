//! Every way in which a member ends is followed by those downstream, in the transaction that ends it.

use serde_json::json;
use sexton_model::id::ProcessId;
use sexton_model::retry::{Decision, Usage};
use sexton_store::lost_attempts::{LossGrounds, find, settle};
use sexton_store::open::{Offer, open};
use sexton_store::operator::{AuditContext, cancel, discard, requeue, restore};

use super::{Fixture, after, later};
use crate::store::{LEASE, fail, n, request, retry};

const BY: AuditContext<'_> = AuditContext { actor: "ada", reason: Some("a test") };

/// One member upstream, and one downstream by each predicate.
async fn each_predicate() -> Fixture {
    let f = Fixture::new().await;
    f.begin(&[
        after("up", &[]),
        after("good", &["up"]),
        ("done", &["up"], json!({"when": "all_done"})),
        ("bad", &["up"], json!({"when": "any_failed"})),
    ])
    .await;
    f.expect(&[("up", "pending"), ("good", "blocked"), ("done", "blocked"), ("bad", "blocked")])
        .await;
    f
}

const SUCCEEDED: [(&str, &str); 3] = [("good", "pending"), ("done", "pending"), ("bad", "skipped")];
const UNSUCCESSFUL: [(&str, &str); 3] =
    [("good", "skipped"), ("done", "pending"), ("bad", "pending")];
const BLOCKED: [(&str, &str); 3] = [("good", "blocked"), ("done", "blocked"), ("bad", "blocked")];

impl Fixture {
    async fn expect_below(&self, up: &str, below: [(&str, &str); 3]) {
        self.expect(&[&[("up", up)], &below[..]].concat()).await;
    }
}

#[tokio::test]
async fn a_success_frees_what_waits_for_it() {
    let f = each_predicate().await;
    f.succeed("up").await;
    f.expect_below("succeeded", SUCCEEDED).await;
    assert_eq!(f.open().await, (2, false));
    // What is freed has a ticket that is due.
    let good = f.id("good").await;
    assert_eq!(f.rows.column(good, "(relay_after <= now())").await.as_deref(), Some("true"));
    f.succeed("good").await;
    f.succeed("done").await;
    assert_eq!(f.open().await, (0, true));
}

#[tokio::test]
async fn a_retry_is_no_end_and_a_parked_member_holds_up_until_somebody_decides() {
    let f = each_predicate().await;
    f.settle("up", retry(0, 1)).await;
    f.expect_below("retrying", BLOCKED).await;
    let up = f.id("up").await;
    let held = f.rows.opened(up, 2, 2).await;
    f.rows.settle(held, fail(), 3).await;
    f.expect_below("failed", BLOCKED).await;
    requeue(f.rows.store(), up, n(3), BY, later(4)).await.unwrap();
    f.expect_below("pending", BLOCKED).await;
    let held = f.rows.opened(up, 3, 5).await;
    f.rows.settle(held, Decision::Succeed, 6).await;
    f.expect_below("succeeded", SUCCEEDED).await;
}

#[tokio::test]
async fn a_resolved_member_counts_as_a_success() {
    let f = each_predicate().await;
    f.settle("up", fail()).await;
    // As a verified requeue does it.
    f.run("UPDATE sexton.executions SET state = 'succeeded', rev = rev + 1, finished_at = now(), outcome = 'verified' WHERE state = 'failed'").await;
    f.expect_below("succeeded", SUCCEEDED).await;
}

#[tokio::test]
async fn a_discard_means_what_the_member_says() {
    let f = each_predicate().await;
    f.settle("up", fail()).await;
    discard(f.rows.store(), f.id("up").await, BY, later(4)).await.unwrap();
    f.expect_below("discarded", UNSUCCESSFUL).await;
    for (on_discard, below) in [("run", "pending"), ("cancel", "cancelled"), ("skip", "skipped")] {
        let f = Fixture::new().await;
        f.begin(&[
            ("up", &[], json!({"on_discard": on_discard})),
            after("below", &["up"]),
            after("last", &["below"]),
        ])
        .await;
        f.settle("up", fail()).await;
        discard(f.rows.store(), f.id("up").await, BY, later(4)).await.unwrap();
        let last = if below == "pending" { "blocked" } else { below };
        f.expect(&[("up", "discarded"), ("below", below), ("last", last)]).await;
        assert_eq!(f.open().await.1, below != "pending", "{on_discard}");
    }
}

/// What is downstream was decided by the discard, once; the restored member runs for itself.
#[tokio::test]
async fn a_discard_that_is_taken_back_opens_the_flow_and_decides_nothing_twice() {
    let f = Fixture::new().await;
    f.begin(&[after("up", &[]), after("below", &["up"])]).await;
    f.settle("up", fail()).await;
    let up = f.id("up").await;
    discard(f.rows.store(), up, BY, later(4)).await.unwrap();
    assert_eq!(f.open().await, (0, true));
    restore(f.rows.store(), up, BY, later(5)).await.unwrap();
    assert_eq!(f.open().await, (1, false));
    requeue(f.rows.store(), up, n(2), BY, later(6)).await.unwrap();
    let held = f.rows.opened(up, 2, 7).await;
    f.rows.settle(held, Decision::Succeed, 8).await;
    f.expect(&[("up", "succeeded"), ("below", "skipped")]).await;
    assert_eq!(f.open().await, (0, true));
}

#[tokio::test]
async fn a_cancelled_member_ends_without_success_whether_it_waits_or_runs() {
    let f = each_predicate().await;
    cancel(f.rows.store(), f.id("up").await, BY, later(0)).await.unwrap();
    f.expect_below("cancelled", UNSUCCESSFUL).await;
    let f = each_predicate().await;
    let up = f.id("up").await;
    let held = f.rows.opened(up, 1, 0).await;
    cancel(f.rows.store(), up, BY, later(1)).await.unwrap();
    f.expect_below("running", BLOCKED).await;
    f.rows.settle(held, fail(), 2).await;
    f.expect_below("cancelled", UNSUCCESSFUL).await;
    // A member that waits for others is cancelled like any other.
    let f = each_predicate().await;
    cancel(f.rows.store(), f.id("good").await, BY, later(0)).await.unwrap();
    f.succeed("up").await;
    f.expect_below("succeeded", [("good", "cancelled"), ("done", "pending"), ("bad", "skipped")])
        .await;
}

/// The way of a worker that died, and of an attempt that it can no longer end.
#[tokio::test]
async fn a_lost_attempt_that_leaves_no_retry_parks_its_member_and_one_that_does_is_no_end() {
    let f = each_predicate().await;
    let up = f.id("up").await;
    f.rows.opened(up, 1, 0).await;
    let workers: [ProcessId; 1] = [f.rows.worker];
    let grounds = LossGrounds::OfWorkers(&workers);
    let lost = find(f.rows.store(), &grounds, 10).await.unwrap();
    let used = Usage { crashes: 3, ..Usage::default() };
    let verdicts: Vec<_> = lost.into_iter().map(|one| (one, Decision::Fail { used })).collect();
    settle(f.rows.store(), &grounds, &verdicts, later(30)).await.unwrap();
    f.expect_below("failed", BLOCKED).await;
    discard(f.rows.store(), up, BY, later(31)).await.unwrap();
    f.expect_below("discarded", UNSUCCESSFUL).await;
}

#[tokio::test]
async fn a_member_that_comes_too_late_to_run_is_skipped_and_so_is_what_waits_for_it() {
    let f = each_predicate().await;
    // Only firings are ever stale: this one is made to look like one.
    f.run("UPDATE sexton.jobs SET stale_after_ms = 10000").await;
    f.run("UPDATE sexton.executions SET execution_key = 'cron-2027-01-15T08:00:00Z' WHERE waits IS NULL").await;
    let requests = [request(f.id("up").await, 1)];
    let offers = [Offer::new("work")];
    let opened =
        open(f.rows.store(), f.rows.worker, "w:1", &offers, &requests, LEASE, later(0)).await;
    assert_eq!(opened.unwrap().skipped.len(), 1);
    f.expect_below("skipped", UNSUCCESSFUL).await;
}

#[tokio::test]
async fn what_is_skipped_is_an_end_for_those_further_down() {
    let f = Fixture::new().await;
    f.begin(&[
        after("a", &[]),
        after("b", &["a"]),
        after("c", &["b"]),
        ("mop", &["c"], json!({"when": "any_failed"})),
        ("end", &["c", "mop"], json!({"when": "all_done"})),
    ])
    .await;
    cancel(f.rows.store(), f.id("a").await, BY, later(0)).await.unwrap();
    f.expect(&[
        ("a", "cancelled"),
        ("b", "skipped"),
        ("c", "skipped"),
        ("mop", "pending"),
        ("end", "blocked"),
    ])
    .await;
    f.succeed("mop").await;
    f.succeed("end").await;
    assert_eq!(f.open().await, (0, true));
}

/// A thousand in a row are no recursion that a stack could be too small for.
#[tokio::test]
async fn a_long_chain_is_skipped_to_its_end() {
    let f = Fixture::new().await;
    let names: Vec<String> = (0..1_000).map(|number| format!("m{number}")).collect();
    let above: Vec<[&str; 1]> = names.iter().map(|name| [name.as_str()]).collect();
    let mut members = vec![after(&names[0], &[])];
    members.extend((1..names.len()).map(|place| after(&names[place], &above[place - 1])));
    f.begin(&members).await;
    cancel(f.rows.store(), f.id("m0").await, BY, later(0)).await.unwrap();
    assert_eq!(f.states().await.values().filter(|state| *state == "skipped").count(), 999);
    assert_eq!(f.open().await, (0, true));
}

#[tokio::test]
async fn an_end_that_is_rolled_back_frees_nothing() {
    let f = each_predicate().await;
    let mut tx = f.pool().begin().await.unwrap();
    sqlx::query("UPDATE sexton.executions SET state = 'succeeded', next_attempt_at = NULL, finished_at = now() WHERE id = $1")
        .bind(f.id("up").await.get())
        .execute(&mut *tx)
        .await
        .unwrap();
    f.expect_below("pending", BLOCKED).await;
    tx.rollback().await.unwrap();
    f.expect_below("pending", BLOCKED).await;
    assert_eq!(f.open().await, (4, false));
}
