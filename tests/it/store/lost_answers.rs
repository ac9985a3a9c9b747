//! Answers that never come: what is left of the pool of connections afterwards.

use std::time::Duration;

use sexton_store::{Store, StoreOptions};
use sexton_tests::database::TestDatabase;
use sexton_tests::proxy::Proxy;
use tokio::time::timeout;

#[tokio::test]
async fn a_connection_whose_answer_was_given_up_does_not_make_the_pool_smaller() {
    let db = TestDatabase::create().await.unwrap();
    let proxy = Proxy::before(db.url()).await.unwrap();
    let mut options =
        StoreOptions::new(format!("{}?sslmode=disable", proxy.url(db.url())), "sexton test");
    options.pool_size = 2;
    let store = Store::open(&options).unwrap();
    store.ping().await.unwrap();
    proxy.swallow_answers_matching(b"SELECT", 2);
    let given_up =
        timeout(Duration::from_millis(500), async { tokio::join!(store.probe(), store.probe()) });
    assert!(given_up.await.is_err(), "neither is answered");
    let back = async {
        while store.ping().await.is_err() {
            // A try waits for a connection for as long as the pool allows.
        }
    };
    timeout(Duration::from_secs(20), back).await.expect("both places are free again");
}
