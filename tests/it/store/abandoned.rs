//! A cancelled wait leaves no connection behind that is in the middle of a statement.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_tests::database::TestDatabase;
use sqlx::{Executor as _, Row as _};
use tokio::task::yield_now;

/// How often to poll whether the statement has begun: from too seldom to often enough.
const LOOKS: [usize; 6] = [1, 3, 10, 50, 200, 1_000];

#[tokio::test]
async fn an_abandoned_begin_is_rolled_back() {
    let db = TestDatabase::create().await.unwrap();
    let mut given_up = 0;
    for round in 0..300 {
        let mut has_begun = false;
        {
            let begins = ExclusiveLock::try_acquire(db.store(), ExclusiveTask::Retention, None);
            let mut begins = pin!(begins);
            for _ in 0..LOOKS[round % LOOKS.len()] {
                let look = poll_fn(|context| Poll::Ready(begins.as_mut().poll(context).is_ready()));
                has_begun = look.await;
                if has_begun {
                    break;
                }
                yield_now().await;
            }
        }
        given_up += usize::from(!has_begun);
        // Outside any transaction, on any connection of the pool: a statement by itself.
        let alone = sqlx::raw_sql("SELECT now() = statement_timestamp()");
        let alone = db.pool().fetch_one(alone).await.unwrap();
        assert!(
            alone.get::<bool, _>(0),
            "round {round}: a connection of the pool was in a transaction"
        );
    }
    assert!(given_up > 20, "only {given_up} waits were given up");
}
