//! Handlers that are stopped: at their timeout, by a cancel, with their worker; and those that block.

use super::{FINAL_TIMEOUT, Shop};
use crate::process::consuming::until_alive;

const UNPAID: &str = "retries_used = 0 AND timeouts_used = 0 AND crashes_used = 0";

async fn begun(shop: &Shop) {
    shop.until("sexton.attempt_output WHERE content LIKE '%begin%'", 1).await;
}

#[tokio::test]
async fn a_cancelled_handler_is_notified_and_dropped_if_it_does_not_stop() {
    let shop = Shop::new("lease = \"1h\"").await;
    let _worker = shop.worker(&[]);
    for (what, cancelled) in [("obey", 1), ("hang", 2)] {
        let id = shop.order(what).await;
        shop.until("sexton.attempt_output WHERE content LIKE '%begin%'", cancelled).await;
        shop.cancel(&id).await;
        let ended =
            format!("sexton.executions WHERE state = 'cancelled' AND attempt = 1 AND {UNPAID}");
        shop.until(&ended, cancelled).await;
    }
    let cleared = std::fs::read_to_string(shop.platform.folder().join("cleared")).unwrap();
    assert_eq!(cleared, "the execution was cancelled");
}

#[tokio::test]
async fn a_handler_over_its_timeout_costs_a_timeout_and_no_retry() {
    let shop = Shop::new("timeout = \"1s\"\nretry = { delay = \"1s\" }").await;
    let _worker = shop.worker(&[("WORKER_SLOTS", "2")]);
    shop.order("obey").await;
    shop.order("hang").await;
    let done = "sexton.executions WHERE state = 'succeeded' AND attempt = 2 AND timeouts_used = 1
                AND retries_used = 0";
    shop.until(done, 2).await;
    assert_eq!(shop.count("sexton.all_attempts WHERE number = 1 AND outcome = 'timeout'").await, 2);
}

#[tokio::test]
async fn a_stopping_worker_interrupts_its_handlers_at_no_cost() {
    for what in ["obey", "hang"] {
        let shop = Shop::new("").await;
        let mut stopping = shop.worker(&[("SHUTDOWN_GRACE_MS", "300")]);
        shop.order(what).await;
        begun(&shop).await;
        stopping.terminate();
        assert!(stopping.exit(FINAL_TIMEOUT).await.success(), "{}", stopping.log());
        let waits =
            format!("sexton.executions WHERE state = 'retrying' AND attempt = 2 AND {UNPAID}");
        assert_eq!(shop.count(&waits).await, 1, "{what}");
        assert_eq!(shop.count("sexton.all_attempts WHERE outcome = 'interrupted'").await, 1);
        let _other = shop.platform.start_handlers("w2", &[]).unwrap();
        shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    }
}

#[tokio::test]
async fn blocked_handler_threads_delay_no_lease_renewal() {
    let shop = Shop::new("lease = \"1s\"").await;
    let _worker = shop.worker(&[("WORKER_SLOTS", "8")]);
    for _ in 0..8 {
        shop.trigger("obey", r#"{"do": "block", "ms": 3000}"#).await;
    }
    shop.until(
        "sexton.executions WHERE state = 'succeeded' AND attempt = 1 AND crashes_used = 0",
        8,
    )
    .await;
    assert_eq!(shop.count("sexton.all_attempts").await, 8);
}

/// All of its two threads.
const TWO: [(&str, &str); 2] = [("WORKER_SLOTS", "2"), ("TOKIO_WORKER_THREADS", "2")];

#[tokio::test]
async fn livez_names_the_blocked_threads_of_handlers_and_nothing_else() {
    let shop = Shop::new("lease = \"2s\"").await;
    // Half a minute in production.
    let silence = ("RUNTIME_SILENCE_MS", "3000");
    let mut worker = shop.worker(&[&TWO[..], &[silence]].concat());
    worker.ready().await;
    until_alive(&shop.platform, &worker, true).await;
    for _ in 0..2 {
        shop.order("hold").await;
    }
    shop.until("sexton.executions WHERE state = 'running'", 2).await;
    let body = until_alive(&shop.platform, &worker, false).await;
    // After the head of the answer.
    let liveness: serde_json::Value =
        serde_json::from_str(&body[body.find('{').unwrap()..]).unwrap();
    let silent = liveness["loops"].as_array().unwrap().iter().filter(|one| one["alive"] == false);
    let silent: Vec<_> = silent.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(silent, ["threads of the handlers"], "{body}");
    // What is not the handlers' goes on: it is ready, and keeps the leases.
    let (ready, body) = worker.ask("/readyz").await.unwrap();
    assert!(ready, "{body}");
    shop.release();
    until_alive(&shop.platform, &worker, true).await;
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 2).await;
}
