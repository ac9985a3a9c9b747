//! The answer to the commit is lost, or the worker wakes when another has its attempt.

use sexton_tests::proxy::Proxy;

use super::{Bank, FINAL_TIMEOUT};

const COUNTS: &str = "sql = \"insert into effects values ($2) returning key\"";

async fn proxy(bank: &Bank) -> (Proxy, String) {
    let url = bank.platform.database_url();
    let proxy = Proxy::before(url).await.unwrap();
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{}{separator}sslmode=disable", proxy.url(url));
    (proxy, url)
}

#[tokio::test]
async fn a_worker_finds_a_commit_with_a_lost_answer_in_the_row() {
    let bank = Bank::new("", COUNTS, "").await;
    let (proxy, url) = proxy(&bank).await;
    let mut worker = bank.worker(&[("DATABASE_URL", &url)]);
    worker.ready().await;
    proxy.swallow_answers_matching(b"commit_task", 1);
    bank.trigger("k").await;
    bank.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    // The next waits for the slot, which is free when the worker knows the outcome.
    bank.trigger("next").await;
    bank.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 2).await;
    assert_eq!(bank.count("effects").await, 2);
    assert_eq!(bank.count("sexton.all_attempts WHERE late_outcome IS NOT NULL").await, 0);
    let log = worker.log();
    assert_eq!(log.matches("attempt 1 of a.b: succeeded").count(), 2, "{log}");
}

#[tokio::test]
async fn a_lost_commit_fails_the_attempt_without_an_effect() {
    let retry = "retry = { delay = \"1s\", max_retries = 3 }";
    let bank = Bank::new("", COUNTS, retry).await;
    let (proxy, url) = proxy(&bank).await;
    let stops =
        [("FAULT_POINT", "worker.sql_settled"), ("FAULT_ACTION", "stop"), ("DATABASE_URL", &url)];
    let mut worker = bank.worker(&stops);
    worker.ready().await;
    bank.trigger("k").await;
    let stopped = async || worker.log().contains("stopping this process").then_some(());
    bank.platform.eventually("the worker stands before the commit", FINAL_TIMEOUT, stopped).await;
    proxy.cut();
    // The server rolled it back when it lost its client.
    bank.until(
        "pg_stat_activity WHERE datname = current_database() AND application_name LIKE
         'sexton worker % tasks' AND state = 'idle in transaction'",
        0,
    )
    .await;
    proxy.pass();
    worker.resume();
    bank.until("sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    bank.until("sexton.all_attempts WHERE number = 1 AND error_class = 'commit_lost'", 1).await;
    assert_eq!(bank.count("effects").await, 1);
}

/// The worker is frozen between its statement and the settlement until the attempt is lost and the
/// next one has run.
#[tokio::test]
async fn an_overtaken_worker_rolls_its_statement_back() {
    let bank = Bank::new("", COUNTS, "lease = \"3s\"").await;
    let stops = [("FAULT_POINT", "worker.sql_ran"), ("FAULT_ACTION", "stop")];
    let mut frozen = bank.worker(&stops);
    frozen.ready().await;
    bank.trigger("k").await;
    let stopped = async || frozen.log().contains("stopping this process").then_some(());
    bank.platform
        .eventually("the worker stands before the settlement", FINAL_TIMEOUT, stopped)
        .await;
    let _other = bank.platform.start_worker("w2", &[]).unwrap();
    bank.until("sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    frozen.resume();
    bank.until("sexton.all_attempts WHERE number = 1 AND late_outcome IS NOT NULL", 1).await;
    assert_eq!(bank.count("effects").await, 1);
    assert_eq!(bank.shown().await["result"], "a.b:k");
}
