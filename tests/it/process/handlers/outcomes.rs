//! Each way in which a handler ends, by itself.

use serde_json::json;

use super::{FINAL_TIMEOUT, Shop};

const RETRY: &str = "retry = { delay = \"1s\", max_retries = 1 }";

#[tokio::test]
async fn a_handler_s_result_progress_and_lines_are_recorded() {
    let shop = Shop::new("").await;
    let _worker = shop.worker(&[]);
    let id = shop.order("report_progress").await;
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    let shown = shop.show(&id).await;
    assert_eq!(shown["result"]["attempt"], 1);
    let key = shown["idempotency_key"].as_str().unwrap();
    assert_eq!(shown["result"]["key"], key);
    assert_eq!(shown["attempts"][0]["progress"]["values"], json!({"records": 1200}));
    let logs = shop.platform.sexton(&["executions", "logs", &id]).await;
    assert!(logs.stdout.contains("begin 1"), "{logs}");
}

#[tokio::test]
async fn each_kind_of_error_has_its_outcome_and_its_reason() {
    let shop = Shop::new(RETRY).await;
    let mut worker = shop.worker(&[("WORKER_SLOTS", "4")]);
    for what in ["fail", "fail_with_wait", "fail_for_good", "panic"] {
        shop.order(what).await;
    }
    shop.trigger("obey", r#"{"do": "sing"}"#).await;
    shop.until(
        "sexton.executions WHERE state = 'succeeded' AND attempt = 2 AND retries_used = 1",
        3,
    )
    .await;
    shop.until("sexton.executions WHERE state = 'failed' AND attempt = 2 AND retries_used = 0", 2)
        .await;
    let attempts =
        |condition: &str| format!("sexton.all_attempts WHERE number = 1 AND {condition}");
    for condition in [
        "outcome = 'error' AND error_class = 'error' AND error_message LIKE 'No such file%'",
        "outcome = 'error' AND error_message = 'the till is shut'",
        "outcome = 'permanent' AND error_class = 'closed' AND error_message = 'it is closed'",
        "outcome = 'error' AND error_class = 'panic'
            AND error_message LIKE '%panicked at tests/src/bin/handlers.rs:%: no such luck'",
        "outcome = 'permanent' AND error_class = 'invalid_params'
            AND error_message LIKE '%unknown variant `sing`%'",
    ] {
        assert_eq!(shop.count(&attempts(condition)).await, 1, "{condition}");
    }
    // The job's own delay is 1 s.
    let waited =
        "sexton.all_attempts a JOIN sexton.all_attempts b USING (execution_id) WHERE a.number = 1 AND b.number = 2
        AND a.error_message = 'the till is shut' AND b.opened_at - a.finished_at >= interval '4 s'";
    assert_eq!(shop.count(waited).await, 1);
    // Its panic is in its output and nowhere else; the worker lives, with all its slots.
    let logged = "sexton.attempt_output WHERE content LIKE '%no such luck%'";
    assert_eq!(shop.count(logged).await, 1);
    assert!(!worker.log().contains("thread 'sexton-handler' panicked"), "{}", worker.log());
    assert!(worker.ended().is_none());
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
}

#[tokio::test]
async fn a_snoozed_handler_is_run_later_at_no_cost_and_is_counted() {
    let shop = Shop::new("retry = { max_retries = 0 }").await;
    let _worker = shop.worker(&[]);
    let id = shop.order("snooze").await;
    let done = "sexton.executions WHERE state = 'succeeded' AND attempt = 4 AND snoozes_used = 3
        AND retries_used = 0 AND timeouts_used = 0 AND crashes_used = 0";
    shop.until(done, 1).await;
    let snoozed = "sexton.all_attempts WHERE outcome = 'snoozed' AND error_class = 'snoozed'
        AND error_message = 'the task asked to be run again in 1s'";
    assert_eq!(shop.count(snoozed).await, 3);
    let early = "sexton.all_attempts a JOIN sexton.all_attempts b ON b.number = a.number + 1
        WHERE b.opened_at - a.finished_at < interval '1 s'";
    assert_eq!(shop.count(early).await, 0, "each waited for as long as it had asked");
    let shown = shop.platform.sexton(&["executions", "show", &id]).await;
    assert!(shown.stdout.contains("snoozed") && shown.stdout.contains("3 times"), "{shown}");
}

#[tokio::test]
async fn a_handler_that_always_snoozes_is_parked_and_starts_anew_when_requeued() {
    let shop = Shop::new("").await;
    let id = shop.order("snooze").await;
    sqlx::raw_sql("UPDATE sexton.executions SET snoozes_used = 1000")
        .execute(shop.platform.store().pool())
        .await
        .unwrap();
    let _worker = shop.worker(&[]);
    let parked =
        "sexton.executions WHERE state = 'failed' AND attempt = 2 AND error_class = 'snoozed_too_often'
        AND error_message LIKE '%put off 1000 times%'";
    shop.until(parked, 1).await;
    let done = shop.platform.sexton(&["failed", "requeue", &id, "--reason", "ready soon"]).await;
    assert!(done.status.success(), "{done}");
    shop.until(
        "sexton.executions WHERE state = 'succeeded' AND attempt = 4 AND snoozes_used = 2",
        1,
    )
    .await;
}

#[tokio::test]
async fn handlers_and_a_catalogue_are_served_by_one_worker_unless_both_have_a_name() {
    let mut shop = Shop::new("").await;
    shop.platform.catalogue("[tasks.greet]\ncommand = [\"/bin/echo\", \"hello\"]\n");
    let greet = super::by_hand("a.greet", "greet", "");
    shop.platform.apply(&greet).await.unwrap();
    let _worker = shop.worker(&[]);
    shop.trigger("greet", "{}").await;
    shop.order("report_progress").await;
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 2).await;
    shop.platform.catalogue("[tasks.obey]\ncommand = [\"/bin/true\"]\n");
    let mut refused = shop.platform.start_handlers("w2", &[]).unwrap();
    assert_eq!(refused.exit(FINAL_TIMEOUT).await.code(), Some(1));
    let log = refused.log();
    assert!(log.contains("the task type obey, which this program has a handler for"), "{log}");
}
