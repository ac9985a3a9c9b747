//! Waits that are given up leave no connection behind that is in the middle of something.

use std::time::Duration;

use sexton_store::exclusive::{Exclusive, ExclusiveTask};
use sexton_tests::database::TestDatabase;
use sqlx::{Executor as _, Row as _};

/// Long enough for some, too short for others.
const PATIENCE: [u64; 6] = [20, 60, 120, 250, 500, 900];

#[tokio::test]
async fn a_transaction_whose_beginning_nobody_awaits_any_more_is_undone() {
    let db = TestDatabase::create().await.unwrap();
    let mut given_up = 0;
    for round in 0..300 {
        let patience = Duration::from_micros(PATIENCE[round % PATIENCE.len()]);
        let begins = Exclusive::try_acquire(db.store(), ExclusiveTask::Retention, None);
        given_up += usize::from(tokio::time::timeout(patience, begins).await.is_err());
        // Outside of any transaction, on whichever connection it gets: a statement of its own.
        let alone = sqlx::raw_sql("SELECT now() = statement_timestamp()");
        let alone = db.pool().fetch_one(alone).await.unwrap();
        assert!(
            alone.get::<bool, _>(0),
            "round {round}: a connection of the pool was in a transaction"
        );
    }
    assert!(given_up > 20, "only {given_up} waits were given up");
}
