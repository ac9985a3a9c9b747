//! The table `failures` and the counts are what the rows say, after any history.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sexton_store::Store;
use sexton_store::failures::{GroupFilter, GroupOrder, aggregate, list_groups, prune_groups};
use uuid::Uuid;

use super::{DISCARD, Draw, Failure, REQUEUE, RESTORE, Yard};

/// What is failed, by group, as the executions themselves say.
const COUNTED: &str = "SELECT fingerprint, count(*), count(DISTINCT job_id) FROM sexton.executions
    WHERE state = 'failed' AND fingerprint IS NOT NULL GROUP BY 1";
/// Rows that the failure index lacks, should not have, or has with other values.
const DIFFERENCES: &str = "SELECT count(*) FROM (
        SELECT id, state = 'discarded' AS discarded, job_id, task_type, pool, finished_at, error_class,
            fingerprint, params
        FROM sexton.executions WHERE state IN ('failed', 'discarded')) e
    FULL JOIN sexton.failures f ON f.execution_id = e.id
    WHERE (e.id, e.discarded, e.job_id, e.task_type, e.pool, e.finished_at, e.error_class, e.fingerprint,
           e.params)
        IS DISTINCT FROM (f.execution_id, f.discarded, f.job_id, f.task_type, f.pool, f.failed_at,
           f.error_class, f.fingerprint, f.params)";

/// Transactions in this database beside the one that asks.
const OTHER_TRANSACTIONS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
      AND backend_type = 'client backend'";
/// For what takes milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// By fingerprint: how many, of how many jobs.
type Counts = BTreeMap<String, (i64, i64)>;

async fn read_counts(store: &Store) -> Counts {
    let all =
        list_groups(store, &GroupFilter::default(), GroupOrder::Count, None, 1_000).await.unwrap();
    all.into_iter().map(|group| (group.fingerprint, (group.standing, group.jobs))).collect()
}

async fn counted(yard: &Yard) -> Counts {
    let rows: Vec<(String, i64, i64)> =
        sqlx::query_as(COUNTED).fetch_all(yard.pool()).await.unwrap();
    rows.into_iter().map(|(fingerprint, count, jobs)| (fingerprint, (count, jobs))).collect()
}

#[tokio::test]
async fn the_failure_index_and_its_counts_match_the_rows_after_any_history() {
    let yard = Yard::new().await;
    let over = Arc::new(AtomicBool::new(false));
    let folders: Vec<_> =
        (0..3_u64).map(|n| tokio::spawn(folds(yard.db.store().clone(), n, over.clone()))).collect();
    let mut draw = Draw(7);
    let mut ids: Vec<Uuid> = Vec::new();
    for step in 0..400 {
        let failure = Failure {
            job: yard.jobs[draw.below(2)],
            ..yard.failure(
                step,
                draw.of(&["disk full", "card 7 declined", "no route", "bad gateway"]),
            )
        };
        if ids.len() < 12 || draw.below(4) == 0 {
            ids.push(failure.insert(&yard).await);
        } else {
            act(&yard, &mut draw, &mut ids, &failure).await;
        }
        assert_eq!(read_counts(yard.db.store()).await, counted(&yard).await, "step {step}");
    }
    over.store(true, Ordering::Relaxed);
    for folder in folders {
        folder.await.unwrap();
    }
    let began = Instant::now();
    assert_eq!(yard.number(DIFFERENCES).await, 0);
    // Until it has ended in the server as well, an aggregation that was cut off keeps others from their turn.
    while yard.number(OTHER_TRANSACTIONS).await > 0 {
        assert!(began.elapsed() < PATIENCE, "an aggregation that was cut off goes on and on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Nothing is left to fold, and nothing has changed by that.
    while aggregate(yard.db.store(), 50, None).await.unwrap().changes > 0 {}
    prune_groups(yard.db.store(), None).await.unwrap();
    assert_eq!(yard.number("SELECT count(*) FROM sexton.failure_changes").await, 0);
    assert_eq!(
        yard.number("SELECT count(*) FROM sexton.failure_counts WHERE standing <= 0").await,
        0
    );
    assert_eq!(read_counts(yard.db.store()).await, counted(&yard).await);
}

/// Something happens to one that is there.
async fn act(yard: &Yard, draw: &mut Draw, ids: &mut Vec<Uuid>, failure: &Failure) {
    let place = draw.below(ids.len());
    let id = ids[place];
    match draw.below(7) {
        0 | 1 => yard.sql(REQUEUE, id).await,
        2 => yard.sql(DISCARD, id).await,
        3 => yard.sql(RESTORE, id).await,
        // A program of the version before knows no fingerprints.
        4 => yard.sql("UPDATE sexton.executions SET fingerprint = NULL WHERE id = $1", id).await,
        5 => {
            yard.sql("DELETE FROM sexton.executions WHERE id = $1", id).await;
            ids.remove(place);
        }
        _ => {
            yard.sql(REQUEUE, id).await;
            let state: String =
                sqlx::query_scalar("SELECT state FROM sexton.executions WHERE id = $1")
                    .bind(id)
                    .fetch_one(yard.pool())
                    .await
                    .unwrap();
            if state == "pending" {
                failure.fail(yard, id).await;
            }
        }
    }
}

/// Folds in small batches, and is cut off in the middle of it as often as not.
async fn folds(store: Store, seed: u64, over: Arc<AtomicBool>) {
    let mut draw = Draw(seed);
    while !over.load(Ordering::Relaxed) {
        let patience = Duration::from_micros(draw.below(6_000) as u64);
        if let Ok(aggregated) = tokio::time::timeout(patience, aggregate(&store, 3, None)).await {
            aggregated.unwrap();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_message_of_any_kind_fails_its_execution() {
    let yard = Yard::new().await;
    let long = "ab'\\:*&|! \u{1b}[31m<->".repeat(400);
    let word = "x".repeat(3_999);
    for message in ["", "'", "\\", ":* & | ! ( <->", "größe → 7", &long, &word] {
        let class = "exit_1";
        Failure { class, ..yard.failure(1, message) }.insert(&yard).await;
    }
    assert_eq!(yard.number("SELECT count(*) FROM sexton.failures").await, 7);
    assert_eq!(yard.number(DIFFERENCES).await, 0);
}

/// Retention removes processes long before failures, and the failure index keeps their names.
#[tokio::test]
async fn a_failure_keeps_the_name_of_its_worker_after_the_worker_is_forgotten() {
    let yard = Yard::new().await;
    let failure = Failure { worker: Some("w1"), ..yard.failure(1, "disk full") };
    let id = failure.insert(&yard).await;
    sqlx::query("DELETE FROM sexton.instances").execute(yard.pool()).await.unwrap();
    for statement in [
        DISCARD,
        RESTORE,
        "UPDATE sexton.executions SET params = '{\"a\": 1}' WHERE id = $1",
        "UPDATE sexton.executions SET fingerprint = NULL WHERE id = $1",
    ] {
        yard.sql(statement, id).await;
        assert_eq!(
            yard.number("SELECT count(*) FROM sexton.failures WHERE worker = 'w1'").await,
            1,
            "{statement}"
        );
    }
    assert_eq!(yard.number(DIFFERENCES).await, 0);
}
