//! Members that end at the same time.

use std::sync::Arc;

use sexton_model::retry::Decision;
use sexton_store::Store;
use sexton_store::operator::{AuditContext, OperatorError, cancel};
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use tokio::sync::Barrier;

use super::{Fixture, after, later};
use crate::store::settlement;

const ROUNDS: usize = 60;
const BY: AuditContext<'_> = AuditContext { actor: "ada", reason: None };

/// Tries again where another transaction holds the flow.
async fn settle_as_a_worker(store: &Store, end: Settlement) {
    loop {
        match settle(store, std::slice::from_ref(&end), later(1)).await {
            Ok(settled) if settled == [SettleOutcome::Locked] => tokio::task::yield_now().await,
            Ok(settled) => {
                assert!(matches!(settled[..], [SettleOutcome::Done { .. }]), "{settled:?}");
                return;
            }
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
}

/// Each sees the other as not ended until one of them has committed: somebody must free what waits for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_last_members_that_end_at_once_one_frees_what_waits_for_both() {
    for _ in 0..ROUNDS {
        let f = Fixture::new().await;
        f.begin(&[after("a", &[]), after("b", &[]), after("both", &["a", "b"])]).await;
        let held = [
            f.rows.opened(f.id("a").await, 1, 0).await,
            f.rows.opened(f.id("b").await, 1, 0).await,
        ];
        let barrier = Arc::new(Barrier::new(2));
        let ends = held.map(|held| {
            let (store, barrier) = (f.rows.db.other_store().unwrap(), Arc::clone(&barrier));
            tokio::spawn(async move {
                barrier.wait().await;
                settle_as_a_worker(&store, settlement(held, Decision::Succeed)).await;
            })
        });
        for end in ends {
            end.await.unwrap();
        }
        f.expect(&[("a", "succeeded"), ("b", "succeeded"), ("both", "pending")]).await;
        assert_eq!(f.open().await, (1, false));
    }
}

/// The two lock the flow and the member in opposite orders, so one of them may have to repeat; neither end is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancel_of_what_is_being_freed_leaves_no_member_between() {
    for _ in 0..ROUNDS {
        let f = Fixture::new().await;
        f.begin(&[after("a", &[]), after("b", &["a"]), after("c", &["b"])]).await;
        let held = f.rows.opened(f.id("a").await, 1, 0).await;
        let b = f.id("b").await;
        let barrier = Arc::new(Barrier::new(2));
        let (store, turn) = (f.rows.db.other_store().unwrap(), Arc::clone(&barrier));
        let settling = tokio::spawn(async move {
            turn.wait().await;
            settle_as_a_worker(&store, settlement(held, Decision::Succeed)).await;
        });
        let store = f.rows.db.other_store().unwrap();
        let cancelling = tokio::spawn(async move {
            barrier.wait().await;
            loop {
                match cancel(&store, b, BY, later(1)).await {
                    Err(OperatorError::Store(error)) if error.is_transient() => {}
                    other => {
                        other.unwrap();
                        break;
                    }
                }
            }
        });
        settling.await.unwrap();
        cancelling.await.unwrap();
        f.expect(&[("a", "succeeded"), ("b", "cancelled"), ("c", "skipped")]).await;
        assert_eq!(f.open().await, (0, true));
    }
}
