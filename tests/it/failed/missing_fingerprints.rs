//! Failures whose fingerprint is missing.

use sexton_model::fingerprint::fingerprint;
use sexton_store::failures::{list_missing_fingerprints, record_fingerprints};
use uuid::Uuid;

use super::{REQUEUE, Yard};

#[tokio::test]
async fn a_failure_without_a_fingerprint_gets_one_later() {
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
