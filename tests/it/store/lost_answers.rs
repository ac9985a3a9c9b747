//! Answers that never come: what is left of the pool of connections afterwards.

use std::time::Duration;

use sexton_store::notifications::Listener;
use sexton_store::status::clock;
use sexton_store::{Store, StoreOptions};
use sexton_tests::database::TestDatabase;
use sexton_tests::proxy::Proxy;
use tokio::time::{sleep, timeout};

/// For what takes seconds at the worst.
const DEADLINE: Duration = Duration::from_mins(1);

/// A store with two connections, and the proxy before its database.
async fn behind_a_proxy(db: &TestDatabase) -> (Proxy, Store) {
    let proxy = Proxy::before(db.url()).await.unwrap();
    let mut options =
        StoreOptions::new(format!("{}?sslmode=disable", proxy.url(db.url())), "sexton test");
    options.pool_size = 2;
    (proxy, Store::open(&options).unwrap())
}

#[tokio::test]
async fn a_cancelled_query_does_not_shrink_the_pool() {
    let db = TestDatabase::create().await.unwrap();
    let (proxy, store) = behind_a_proxy(&db).await;
    store.ping().await.unwrap();
    proxy.swallow_answers_matching(b"SELECT", 2);
    let given_up =
        timeout(Duration::from_millis(500), async { tokio::join!(clock(&store), clock(&store)) });
    assert!(given_up.await.is_err(), "neither is answered");
    let back = async {
        while store.ping().await.is_err() {
            // A try waits for a connection for as long as the pool allows.
        }
    };
    timeout(Duration::from_secs(20), back).await.expect("both places are free again");
}

/// Their farewells are not answered, and are waited for.
#[tokio::test]
async fn cancelled_listeners_do_not_shrink_the_pool() {
    let db = TestDatabase::create().await.unwrap();
    let (proxy, store) = behind_a_proxy(&db).await;
    let listeners =
        [Listener::connect(&store).await.unwrap(), Listener::connect(&store).await.unwrap()];
    let swallowing = proxy.swallow_answers_matching(b"UNLISTEN", listeners.len());
    drop(listeners);
    let goodbyes = async {
        while !swallowing.is_over() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, goodbyes).await.expect("both say goodbye");
    let working = async { tokio::try_join!(store.ping(), store.ping()) };
    timeout(DEADLINE, working).await.unwrap().expect("both places are free");
}
