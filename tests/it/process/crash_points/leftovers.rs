//! What is in the queues when nobody is at work any more.
//!
//! Asked then because a queue tells only of the messages that nobody holds: while the programs live, a
//! copy too many may be in somebody's hand.

use serde_json::Value;
use sexton_broker::names::retry_queue;
use sexton_broker::{DELAY_QUEUES_MS, PoolName};

use super::{FINAL_TIMEOUT, Scene, count};

/// A sweep that is stopped between two messages leaves the rest to the next, which begins with them.
const SWEEPS: usize = 4;

impl Scene {
    /// No program runs now. The main queue and the delay queues are empty, and in the failed queue is one
    /// message of each failed row and no other.
    pub(super) async fn nothing_is_left_over(&self) {
        if !self.parked_as_failed().await {
            self.is_swept().await;
        }
        self.is_without_consumers().await;
        self.waits(self.wire.main(), 0).await;
        let (namespace, pool) = (self.platform.namespace(), PoolName::default_pool());
        for delay_ms in DELAY_QUEUES_MS {
            let step = retry_queue(namespace, &pool, delay_ms);
            assert_eq!(self.wire.depth(&step).await, 0, "messages in {step}");
        }
        let id =
            |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["execution_id"].take();
        let found = self.wire.look(self.wire.failed()).await;
        let mut parked: Vec<_> = found.iter().map(|it| id(&it.body)).collect();
        parked.sort_by_key(Value::to_string);
        assert_eq!(parked, self.failed().await, "what is parked, and what has failed");
    }

    /// The broker has noticed that the consumers of the main queue are gone, and has put back what they held.
    pub(super) async fn is_without_consumers(&self) {
        let gone = async || (self.wire.consumers(self.wire.main()).await == 0).then_some(());
        self.platform.eventually("nobody consumes", FINAL_TIMEOUT, gone).await;
    }

    /// Nobody is at work, before and after. What the last sweep had no time for, the next one does:
    /// afterwards each failed row has its message, and no other message is there.
    pub(super) async fn is_swept(&self) {
        for _ in 0..SWEEPS {
            let mut sweeper = self.platform.start_scheduler("sweeper", &[]).unwrap();
            sweeper.ready().await;
            let agree = async || self.parked_as_failed().await.then_some(());
            let what = "one message for each failed row";
            self.platform.eventually(what, FINAL_TIMEOUT, agree).await;
            sweeper.terminate();
            assert!(sweeper.exit(FINAL_TIMEOUT).await.success(), "{}", sweeper.log());
            // The first time it may have been the message in its hand that made them agree.
            if self.parked_as_failed().await {
                return;
            }
        }
        panic!("copies stay\n{}", self.platform.log_tails());
    }

    async fn parked_as_failed(&self) -> bool {
        let unpublished =
            "sexton.executions WHERE state = 'failed' AND ticket_published_at IS NULL";
        self.wire.depth(self.wire.failed()).await as usize == self.failed().await.len()
            && count(&self.platform, unpublished).await == 0
    }

    async fn failed(&self) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT id::text FROM sexton.executions WHERE state = 'failed' ORDER BY 1",
        )
        .fetch_all(self.platform.store().pool())
        .await
        .unwrap()
    }
}
