//! Statements that are stopped do not run on in the server, and have had no effect.

use super::{Bank, FINAL_TIMEOUT};

const SLOW: &str = "
    CREATE FUNCTION slow(key text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO effects VALUES (key); PERFORM pg_sleep(600);
    END $$";
const STATEMENT: &str = "sql = \"select slow($2)\"";

async fn slow(entry: &str, job: &str) -> Bank {
    Bank::new(SLOW, &format!("{STATEMENT}\n{entry}"), job).await
}

#[tokio::test]
async fn cancelling_a_statement_ends_it_in_the_server() {
    let bank = slow("", "").await;
    let _worker = bank.worker(&[]);
    bank.trigger("k").await;
    bank.until_running("slow", 1).await;
    let id = bank.shown().await["id"].as_str().unwrap().to_owned();
    let done = bank.platform.sexton(&["executions", "cancel", &id]).await;
    assert!(done.status.success(), "{done}");
    bank.until("sexton.executions WHERE state = 'cancelled' AND attempt = 1", 1).await;
    bank.until_running("slow", 0).await;
    assert_eq!(bank.count("effects").await, 0);
}

#[tokio::test]
async fn a_statement_over_its_own_or_its_attempt_s_limit_times_out() {
    let never = "retry = { max_timeouts = 1 }";
    for (entry, job) in [("statement_timeout = \"200ms\"", ""), ("", "timeout = \"1s\"\n")] {
        let bank = slow(entry, &format!("{job}{never}")).await;
        let _worker = bank.worker(&[]);
        bank.trigger("k").await;
        bank.until("sexton.executions WHERE state = 'failed'", 1).await;
        bank.until("sexton.all_attempts WHERE outcome = 'timeout' AND error_class = 'timeout'", 1)
            .await;
        bank.until_running("slow", 0).await;
        assert_eq!(bank.count("effects").await, 0);
    }
}

#[tokio::test]
async fn a_statement_whose_worker_is_killed_does_not_run_on() {
    let bank = slow("", "").await;
    let mut worker = bank.worker(&[]);
    bank.trigger("k").await;
    bank.until_running("slow", 1).await;
    worker.kill();
    bank.until_running("slow", 0).await;
    assert_eq!(bank.count("effects").await, 0);
}

#[tokio::test]
async fn a_stopping_worker_interrupts_its_statement() {
    let bank = slow("", "").await;
    let mut worker = bank.worker(&[("SHUTDOWN_GRACE_MS", "500")]);
    bank.trigger("k").await;
    bank.until_running("slow", 1).await;
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
    bank.until("sexton.all_attempts WHERE outcome = 'interrupted'", 1).await;
    bank.until("sexton.executions WHERE state = 'retrying' AND retries_used = 0", 1).await;
    bank.until_running("slow", 0).await;
    assert_eq!(bank.count("effects").await, 0);
}
