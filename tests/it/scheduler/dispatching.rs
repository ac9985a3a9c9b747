//! The publishing task: answers of the database that never come hold it up for a bounded time only.

use std::time::Duration;

use sexton_broker::Publisher;
use sexton_broker::publish::DEFAULT_LANES;
use sexton_model::state::State;
use sexton_scheduler::background_loop::runner::LoopContext;
use sexton_scheduler::publish::dispatch::{Dispatch, dispatch};
use sexton_scheduler::publish::outbox::Outbox;
use sexton_service::clock;
use sexton_service::health::{Liveness, Readiness};
use sexton_service::reachability::Reachability;
use sexton_store::{Store, StoreOptions};
use sexton_tests::proxy::Proxy;
use sexton_tests::relaying::take_due;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{Fixture, now};

/// A dispatcher at work whose marks go through a proxy.
struct Scene {
    f: Fixture,
    proxy: Proxy,
    dispatch: Dispatch,
    running: JoinHandle<()>,
    readiness: Readiness,
    database: Reachability,
    soft: CancellationToken,
}

impl Scene {
    async fn new() -> Self {
        let f = Fixture::new().await;
        let proxy = Proxy::before(f.db.url()).await.unwrap();
        let url = format!("{}?sslmode=disable", proxy.url(f.db.url()));
        let mut options = StoreOptions::new(url, "sexton test, far away");
        options.pool_size = 4;
        let store = Store::open(&options).unwrap();
        let publisher = Publisher::start(&f.link, DEFAULT_LANES);
        let outbox = Outbox::new(store, f.link.clone(), publisher);
        let (dispatch, dispatcher) = dispatch(outbox.into());
        let (readiness, soft) = (Readiness::new(), CancellationToken::new());
        let database = Reachability::new(readiness.condition("database", clock::now()));
        database.record_success();
        let around = LoopContext {
            started: CancellationToken::new(),
            soft: soft.clone(),
            hard: CancellationToken::new(),
            liveness: Liveness::new(),
            database: database.clone(),
        };
        let running = tokio::spawn(dispatcher.run(around));
        Self { f, proxy, dispatch, running, readiness, database, soft }
    }

    /// Hands over `count` batches of one ticket.
    async fn hand_over(&self, count: usize) {
        for _ in 0..count {
            self.f.execution(State::Pending, 0).await;
        }
        let taken = take_due(&self.f.store(), 100, now(1)).await.unwrap();
        assert_eq!(taken.tickets.len(), count);
        for ticket in taken.tickets {
            assert!(self.dispatch.offer(vec![ticket]));
        }
    }

    /// Waits until as many tickets as that are marked, or in their queue.
    async fn until(&self, what: &'static str, count: i64, deadline: Duration) {
        let end = Instant::now() + deadline;
        loop {
            let found = match what {
                "in the queue" => i64::from(self.f.ready(&self.f.namespace.main()).await),
                _ => {
                    self.f.number("SELECT count(ticket_published_at) FROM sexton.executions").await
                }
            };
            if found == count {
                return;
            }
            assert!(Instant::now() < end, "{found} of {count} are {what} after {deadline:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn two_missing_answers_delay_the_others_for_ten_seconds() {
    let scene = Scene::new().await;
    scene.proxy.swallow_answers_matching(b"-- mark_published", 2);
    for given_up in [2, 4] {
        // Their rows stay unmarked, and their connection is lost.
        scene.hand_over(2).await;
        scene.until("in the queue", given_up, Duration::from_secs(5)).await;
        let outage = async {
            while scene.readiness.is_ready() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(15), outage).await.expect("a missing answer is an outage");
        scene.database.record_success();
    }
    scene.hand_over(2).await;
    scene.until("marked", 2, Duration::from_secs(5)).await;
    scene.until("in the queue", 6, Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_answers_that_never_come() {
    let scene = Scene::new().await;
    scene.proxy.swallow_answers_matching(b"-- mark_published", 2);
    scene.hand_over(2).await;
    scene.until("in the queue", 2, Duration::from_secs(20)).await;
    scene.soft.cancel();
    timeout(Duration::from_secs(8), scene.running).await.expect("it gives up").unwrap();
}

#[tokio::test]
async fn a_shutdown_publishes_tickets_handed_over_before() {
    let scene = Scene::new().await;
    scene.hand_over(6).await;
    scene.soft.cancel();
    drop(scene.dispatch.clone());
    let Scene { f, dispatch, running, .. } = scene;
    drop(dispatch);
    timeout(Duration::from_secs(4), running).await.expect("nothing is left to do").unwrap();
    assert_eq!(f.number("SELECT count(ticket_published_at) FROM sexton.executions").await, 6);
}
