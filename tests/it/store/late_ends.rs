//! The late result of a fenced worker is stored beside the record, and changes nothing.

use sexton_model::id::ProcessId;
use sexton_store::settle::record_late;
use uuid::Uuid;

use super::{Fixture, at, retry};

#[tokio::test]
async fn a_late_end_is_recorded_once_and_only_by_the_attempt_s_own_worker() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let now = Some(at(2));
    let late = |worker| record_late(fixture.store(), worker, held, "succeeded", now);
    assert!(!late(fixture.worker).await.unwrap(), "an open attempt is not late");
    fixture.settle(held, retry(5, 1), 1).await;
    assert!(!late(ProcessId::new(Uuid::now_v7())).await.unwrap());
    assert!(late(fixture.worker).await.unwrap());
    assert!(!late(fixture.worker).await.unwrap());
    assert_eq!(fixture.state(id).await, "retrying/2");
    assert_eq!(fixture.attempts(id).await, ["1:error"]);
}
