//! A worker that lives, is connected and takes nothing says so; a busy one, and one whose broker is
//! away, does not.

use lapin::options::QueueDeleteOptions;
use sexton_tests::platform::{Platform, Program};
use sexton_tests::proxy::Proxy;

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, by_hand, until};
use crate::bad_input::probe::not_ready;
use crate::bad_input::wire::Wire;

/// A minute in production.
const SILENCE: (&str, &str) = ("CONSUME_SILENCE_MS", "2000");
/// `basic.consume`: class 60, method 20.
const CONSUME: &[u8] = &[0, 60, 0, 20];

/// Waits until `/livez` says so; what else it says.
pub(super) async fn until_alive(platform: &Platform, worker: &Program, alive: bool) -> String {
    let what = format!("/livez says {alive}");
    platform
        .eventually(&what, FINAL_TIMEOUT, async || {
            worker.ask("/livez").await.filter(|(status, _)| *status == alive).map(|(_, body)| body)
        })
        .await
}

#[tokio::test]
async fn a_worker_is_not_live_while_its_free_slots_do_not_consume() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\ncommand = [\"/bin/true\"]\n");
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let proxy = Proxy::before(platform.amqp_url()).await.unwrap();
    let url = proxy.url(platform.amqp_url());
    let env = [("AMQP_URL", url.as_str()), SILENCE, ("WORKER_SLOTS", "2")];
    let mut worker = platform.start_worker("w1", &env).unwrap();
    worker.ready().await;
    until_alive(&platform, &worker, true).await;
    let wire = Wire::connect(&platform).await;
    let both = async || (wire.consumers(wire.main()).await == 2).then_some(());
    platform.eventually("both slots consume", FINAL_TIMEOUT, both).await;

    // The slots lose their consumers with the queue; the new ones are never heard of by the broker.
    proxy.lose_requests_matching(CONSUME);
    wire.channel().queue_delete(wire.main().into(), QueueDeleteOptions::default()).await.unwrap();
    let body = until_alive(&platform, &worker, false).await;
    assert!(body.contains("slots of pool default"), "{body}");
    // Nothing else shows it.
    let (ready, body) = worker.ask("/readyz").await.unwrap();
    assert!(ready, "it is connected, and its database answers: {body}");

    proxy.pass();
    until_alive(&platform, &worker, true).await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;
}

#[tokio::test]
async fn a_busy_worker_and_a_worker_without_a_broker_are_live() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "while ! test -e go; do sleep 0.05; done");
    platform.catalogue(&ledger.catalogue());
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let proxy = Proxy::before(platform.amqp_url()).await.unwrap();
    let url = proxy.url(platform.amqp_url());
    // The ticket is let go of at once, so that the slot has no consumer while its task runs.
    let let_go = ("ACK_DEADLINE_MS", "100");
    let env = [("AMQP_URL", url.as_str()), SILENCE, let_go, ("WORKER_SLOTS", "1")];
    let mut worker = platform.start_worker("w1", &env).unwrap();
    worker.ready().await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    let begun = async || ledger.lines("begin").pop();
    platform.eventually("the task has begun", FINAL_TIMEOUT, begun).await;
    stays_alive(&platform, &worker).await;
    std::fs::write(platform.folder().join("go"), "").unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;

    proxy.cut();
    not_ready(&platform, &worker, "broker", &[]).await;
    stays_alive(&platform, &worker).await;
}

/// For four times as long as [`SILENCE`] allows, by the clock of the database.
async fn stays_alive(platform: &Platform, worker: &Program) {
    let begun: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("SELECT now()").fetch_one(platform.store().pool()).await.unwrap();
    platform
        .eventually("the silence is long over", FINAL_TIMEOUT, async || {
            let (alive, body) = worker.ask("/livez").await?;
            assert!(alive, "{body}");
            let over = "SELECT now() - $1 > interval '8 seconds'";
            let over: bool = sqlx::query_scalar(over)
                .bind(begun)
                .fetch_one(platform.store().pool())
                .await
                .unwrap();
            over.then_some(())
        })
        .await;
}
