//! Acknowledgements are not answered: what was removed is gone when a later answer says so.

use sexton_broker::{Endpoint, Link, LinkSettings, Timeouts};
use sexton_scheduler::background_loop::LoopError;
use sexton_store::unknown_messages::discard;
use sexton_tests::namespace::{TestNamespace, amqp_url};
use sexton_tests::proxy::Proxy;

use super::*;

const DEADLINE: Duration = Duration::from_secs(20);

/// The pass has a discarded message in its hand when the way to the broker ends: its acknowledgement is written,
/// and nobody reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unconfirmed_removal_is_not_reported_as_done() {
    let proxy = Proxy::before(&amqp_url()).await.unwrap();
    let short = Duration::from_secs(2);
    let timeouts = Timeouts { step: short, close: short, ..Timeouts::default() };
    let namespace = TestNamespace::on(&proxy.url(&amqp_url())).with_timeouts(timeouts);
    let link = namespace.link().await;
    let f = Fixture::with(namespace, link).await;
    put(&f, Some("foreign"), None, "{}").await;
    assert_eq!(pass(&f).await.unknown, 1);
    let id: String =
        sqlx::query_scalar("SELECT encode(digest, 'hex') FROM sexton.unknown_messages")
            .fetch_one(f.db.pool())
            .await
            .unwrap();
    let by = AuditContext { actor: "tester", reason: Some("rubbish") };
    discard(&f.store(), &id, false, by, now(150)).await.unwrap();

    let other = f.db.other_store().unwrap();
    let mut held = other.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.unknown_messages FOR UPDATE")
        .execute(&mut *held)
        .await
        .unwrap();
    let sweeping = sweep(&f);
    let losing = async {
        waits_for_a_lock(&f, "record_unknown_message").await;
        proxy.black_hole();
        held.rollback().await.unwrap();
    };
    let (broke_off, ()) = tokio::join!(sweeping.run_once(now(200)), losing);
    // Before anything is judged: a test that fails would wait in the hole, too.
    proxy.cut();
    let gone = "SELECT count(*) FROM sexton.unknown_messages WHERE gone_at IS NOT NULL";
    assert_eq!(f.number(gone).await, 0, "the broker has it still: {broke_off:?}");
    assert!(matches!(broke_off, Err(LoopError::Broker(_))), "{broke_off:?}");

    let endpoint = Endpoint::parse(&amqp_url()).unwrap();
    let there = Link::start(LinkSettings { endpoint, ..f.namespace.settings() });
    assert!(there.up().await.is_some());
    let deadline = Instant::now() + DEADLINE;
    while there.depth(&f.namespace.failed()).await.unwrap().ready == 0 {
        assert!(Instant::now() < deadline, "the message comes back");
        tokio::task::yield_now().await;
    }
    let publisher = sexton_broker::Publisher::start(&there, 1);
    let stop = CancellationToken::new();
    let next = Sweep::new(f.store(), there, publisher, Arc::default(), stop);
    assert!(matches!(
        next.run_once(now(300)).await.unwrap(),
        SweepReport::Pass(Tally { discarded: 1, .. })
    ));
    assert_eq!(f.number(gone).await, 1);
    proxy.pass();
}
