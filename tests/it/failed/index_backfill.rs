//! What failed before there was a register.

use sexton_model::fingerprint::fingerprint;
use sexton_store::failures::{
    backfill_failures, is_backfilled, list_missing_fingerprints, record_fingerprints,
};
use uuid::Uuid;

use super::{DISCARD, REQUEUE, Yard};

/// As the migration leaves a database with failures in it.
async fn as_before(yard: &Yard) {
    for sql in [
        "ALTER TABLE sexton.executions DISABLE TRIGGER index_changed_failure",
        "UPDATE sexton.executions SET fingerprint = NULL",
        "ALTER TABLE sexton.executions ENABLE TRIGGER index_changed_failure",
        "DELETE FROM sexton.failures",
        "DELETE FROM sexton.failure_changes",
        "UPDATE sexton.failures_fill SET done_at = NULL",
    ] {
        sqlx::query(sql).execute(yard.pool()).await.unwrap();
    }
}

#[tokio::test]
async fn older_failures_are_indexed_once_in_batches() {
    let yard = Yard::new().await;
    let mut ids: Vec<Uuid> = Vec::new();
    for second in 0..7 {
        ids.push(yard.failure(second, "disk full").insert(&yard).await);
    }
    yard.sql(DISCARD, ids[1]).await;
    yard.sql(REQUEUE, ids[2]).await;
    as_before(&yard).await;
    assert!(!is_backfilled(yard.db.store()).await.unwrap());
    let first = backfill_failures(yard.db.store(), 3).await.unwrap();
    assert_eq!((first.indexed, first.done), (2, false));
    // Struck before it was noted, the batch is done again, and counts nothing twice.
    sqlx::query("UPDATE sexton.failures_fill SET filled_to = NULL")
        .execute(yard.pool())
        .await
        .unwrap();
    let mut indexed = 0;
    loop {
        let filled = backfill_failures(yard.db.store(), 3).await.unwrap();
        indexed += filled.indexed;
        if filled.done {
            break;
        }
    }
    assert_eq!(indexed, 6);
    assert!(is_backfilled(yard.db.store()).await.unwrap());
    assert_eq!(yard.number("SELECT count(*) FROM sexton.failures").await, 6);
    assert_eq!(yard.number("SELECT sum(change)::bigint FROM sexton.failure_changes").await, 5);
    assert_eq!(backfill_failures(yard.db.store(), 3).await.unwrap().indexed, 0);
}

#[tokio::test]
async fn a_failure_recorded_by_the_previous_version_is_indexed_later() {
    let yard = Yard::new().await;
    let one = yard.failure(1, "disk full; 3 crashed").insert(&yard).await;
    let other = yard.failure(2, "no route").insert(&yard).await;
    sqlx::query("UPDATE sexton.executions SET fingerprint = NULL")
        .execute(yard.pool())
        .await
        .unwrap();
    // Of crashes the row says more than the attempt, whose message counts.
    sqlx::query(
        "INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at, error_class, error_message)
         VALUES ($1, 1, $1, now(), 'lost', 'disk full')",
    )
    .bind(one)
    .execute(yard.pool())
    .await
    .unwrap();
    let found = list_missing_fingerprints(yard.db.store(), 10).await.unwrap();
    assert_eq!(found.len(), 2);
    // Requeued, and failed again for another reason, in between.
    yard.sql(REQUEUE, other).await;
    yard.failure(3, "bad gateway").fail(&yard, other).await;
    assert_eq!(record_fingerprints(yard.db.store(), &found).await.unwrap(), 1);
    let read = async |id: Uuid| -> String {
        sqlx::query_scalar("SELECT fingerprint FROM sexton.failures WHERE execution_id = $1")
            .bind(id)
            .fetch_one(yard.pool())
            .await
            .unwrap()
    };
    assert_eq!(read(one).await, fingerprint("lost", "disk full").to_string());
    assert_eq!(read(other).await, fingerprint("exit_1", "bad gateway").to_string());
    assert_eq!(list_missing_fingerprints(yard.db.store(), 10).await.unwrap(), []);
}
