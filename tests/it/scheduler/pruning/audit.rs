//! Retention removes audit rows after their own retention time, and no person can delete them.

use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::maintenance::pruner::{Pruner, PrunerReport};
use sexton_store::retention::RetentionPolicy;
use tokio_util::sync::CancellationToken;

use crate::scheduler::Fixture;

/// Adds operators' actions of these ages in days, by the database's own clock.
async fn actions(f: &Fixture, days: &[i32]) {
    sqlx::query(
        "INSERT INTO sexton.operator_actions (at, actor, action)
         SELECT now() - d * interval '1 day' - interval '1 hour', 'ann', 'pause' FROM unnest($1::int[]) d",
    )
    .bind(days)
    .execute(f.db.pool())
    .await
    .unwrap();
    while sexton_store::operator::chain::seal(&f.store(), 1_000).await.unwrap().more {}
}

async fn pass(f: &Fixture, audit_days: Option<i32>) -> u64 {
    sqlx::raw_sql("UPDATE sexton.retention SET passed_at = NULL")
        .execute(f.db.pool())
        .await
        .unwrap();
    let terms = RetentionPolicy { days: 30, audit_days };
    let pruner = Pruner::new(f.store(), terms, CancellationToken::new());
    let PrunerReport::Pass(done) = pruner.run_once(None).await.unwrap() else {
        panic!("a pass was due")
    };
    assert!(done.complete);
    done.other
}

#[tokio::test]
async fn retention_removes_audit_entries_after_their_own_time_or_never() {
    let f = Fixture::without_broker().await;
    // More than one batch, all of the same instant.
    actions(&f, &[500; 2_500]).await;
    assert_eq!(pass(&f, None).await, 0);
    assert_eq!(pass(&f, Some(400)).await, 2_500);
    actions(&f, &[1_000, 401, 400, 399, 31, 0]).await;
    assert_eq!(pass(&f, Some(400)).await, 3);
    assert_eq!(f.number("SELECT count(*) FROM sexton.operator_actions").await, 3);
    assert_eq!(f.number("SELECT audit_removed_to FROM sexton.retention").await, 2_503);
    assert_eq!(pass(&f, Some(400)).await, 0);
}

#[tokio::test]
async fn retention_keeps_every_audit_entry_for_thirty_days() {
    let f = Fixture::without_broker().await;
    actions(&f, &[31, 29, 0]).await;
    let forget = "SELECT removed FROM sexton.delete_old_operator_actions('infinity', NULL, 1000)";
    assert_eq!(f.number(forget).await, 1);
    assert_eq!(f.number(forget).await, 0);
    // The delete is allowed only within that function.
    let by_hand = "SELECT sexton.delete_old_operator_actions('infinity', NULL, 1000); DELETE FROM sexton.operator_actions";
    let mut hand = f.db.pool().begin().await.unwrap();
    let refused = sqlx::raw_sql(by_hand).execute(&mut *hand).await.unwrap_err();
    assert!(refused.to_string().contains("append-only"), "{refused}");
}
