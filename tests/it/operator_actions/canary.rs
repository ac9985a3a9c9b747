//! The first few of a bulk, before the rest.

use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::bulks::Bulks;
use sexton_store::bulk;

use super::{BY, Fixture, now};

async fn rounds(scheduler: &Bulks) {
    for _ in 0..4 {
        scheduler.run_once(now(2_000)).await.unwrap();
    }
}

const PENDING: &str = "SELECT count(*) FROM sexton.executions WHERE state = 'pending'";
const SUCCEED: &str =
    "UPDATE sexton.executions SET state = 'succeeded', finished_at = now(), next_attempt_at = NULL
    WHERE state = 'pending'";
const FAIL_ONE: &str =
    "UPDATE sexton.executions SET state = 'failed', attempt = 3, finished_at = now(),
        next_attempt_at = NULL, error_class = 'exit_9', error_message = 'still broken'
    WHERE id = (SELECT id FROM sexton.executions WHERE state = 'pending' LIMIT 1)";

#[tokio::test]
async fn a_bulk_continues_after_every_canary_succeeded() {
    let f = Fixture::new().await;
    f.many(700).await;
    let id = f.with_canary(10).await;
    let scheduler = f.scheduler();
    rounds(&scheduler).await;
    assert_eq!((f.stands(id).await, f.number(PENDING).await), ("running 700/10/0".into(), 10));
    // Nine of them are not enough.
    f.sql(
        "UPDATE sexton.executions SET state = 'succeeded', finished_at = now(), next_attempt_at = NULL
           WHERE id IN (SELECT id FROM sexton.executions WHERE state = 'pending' LIMIT 9)",
    )
    .await;
    rounds(&scheduler).await;
    assert_eq!((f.stands(id).await, f.number(PENDING).await), ("running 700/10/0".into(), 1));
    f.sql(SUCCEED).await;
    rounds(&scheduler).await;
    assert_eq!((f.stands(id).await, f.number(PENDING).await), ("done 700/700/0".into(), 690));
}

#[tokio::test]
async fn a_failing_canary_pauses_the_bulk_with_its_error_until_an_operator_decides() {
    let f = Fixture::new().await;
    f.many(50).await;
    let id = f.with_canary(10).await;
    let scheduler = f.scheduler();
    rounds(&scheduler).await;
    f.sql(FAIL_ONE).await;
    rounds(&scheduler).await;
    assert_eq!((f.stands(id).await, f.number(PENDING).await), ("paused 50/10/0".into(), 9));
    let why = f.bulk(id).await.why.unwrap();
    assert_eq!(why, "1 of the first 10 failed again: exit_9: still broken");
    rounds(&scheduler).await;
    assert_eq!(f.number(PENDING).await, 9, "paused is paused");
    bulk::resume(f.store(), id, BY).await.unwrap();
    rounds(&scheduler).await;
    assert_eq!((f.stands(id).await, f.number(PENDING).await), ("done 50/50/0".into(), 49));
}

#[tokio::test]
async fn a_canary_larger_than_the_bulk_covers_the_whole_bulk() {
    let f = Fixture::new().await;
    f.many(3).await;
    let id = f.with_canary(10).await;
    let scheduler = f.scheduler();
    rounds(&scheduler).await;
    assert_eq!(f.stands(id).await, "running 3/3/0", "they have not ended");
    f.sql(SUCCEED).await;
    rounds(&scheduler).await;
    assert_eq!(f.stands(id).await, "done 3/3/0");
}
