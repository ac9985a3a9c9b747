//! The transactions of handlers: what counts with the success, and what is taken back.

use std::os::unix::process::ExitStatusExt as _;

use super::{FINAL_TIMEOUT, Shop};

const INSERT: &str = "INSERT INTO effects VALUES ('once')";

async fn run(shop: &Shop, statements: &[&str], fail: bool) -> String {
    let params = serde_json::json!({"run": statements, "fail": fail}).to_string();
    shop.trigger("statements", &params).await
}

/// Waits until so many sessions of handlers run something that holds `text`.
async fn until_running(shop: &Shop, text: &str, wanted: i64) {
    let running = format!(
        "pg_stat_activity WHERE datname = current_database() AND state = 'active'
         AND application_name LIKE 'sexton worker % tasks' AND query LIKE '%{text}%'"
    );
    shop.until(&running, wanted).await;
}

#[tokio::test]
async fn a_handler_s_transaction_commits_with_success_and_rolls_back_with_failure() {
    let shop = Shop::new("retry = { max_retries = 0 }").await;
    let _worker = shop.worker(&[]);
    run(&shop, &[INSERT], true).await;
    shop.until("sexton.executions WHERE state = 'failed' AND error_message = 'not after all'", 1)
        .await;
    assert_eq!(shop.count("effects").await, 0);
    run(&shop, &[INSERT], false).await;
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    assert_eq!(shop.count("effects").await, 1);
}

#[tokio::test]
async fn a_handler_that_ends_its_transaction_itself_does_not_succeed() {
    let shop = Shop::new("").await;
    let _worker = shop.worker(&[]);
    for (n, statements) in [(1, ["COMMIT", "SELECT 1"]), (2, ["COMMIT", "BEGIN"])] {
        run(&shop, &statements, false).await;
        let refused = "sexton.executions WHERE state = 'failed' AND attempt = 2
            AND error_class = 'invalid_transaction_termination'";
        shop.until(refused, n).await;
    }
}

#[tokio::test]
async fn a_handler_that_commits_by_itself_and_fails_is_not_run_again() {
    let shop = Shop::new("").await;
    let _worker = shop.worker(&[]);
    run(&shop, &[INSERT, "COMMIT"], true).await;
    let refused = "sexton.executions WHERE state = 'failed'
        AND error_class = 'invalid_transaction_termination'";
    shop.until(refused, 1).await;
    assert_eq!(shop.count("sexton.all_attempts").await, 1);
}

#[tokio::test]
async fn a_nested_transaction_is_part_of_the_handler_s_transaction() {
    let shop = Shop::new("retry = { max_retries = 0 }").await;
    let _worker = shop.worker(&[]);
    let dropped = "INSERT INTO effects VALUES ('dropped')";
    let failed = serde_json::json!({"nested": INSERT, "dropped": dropped, "run": [], "fail": true});
    shop.trigger("statements", &failed.to_string()).await;
    shop.until("sexton.executions WHERE state = 'failed' AND error_message = 'not after all'", 1)
        .await;
    assert_eq!(shop.count("effects").await, 0);
    // The second uses the connection of the first.
    for n in [1, 2] {
        let done = serde_json::json!({"nested": INSERT, "dropped": dropped, "run": []});
        shop.trigger("statements", &done.to_string()).await;
        shop.until("sexton.executions WHERE state = 'succeeded'", n).await;
        assert_eq!(shop.count("effects WHERE key = 'once'").await, n);
        assert_eq!(shop.count("effects").await, n);
    }
}

#[tokio::test]
async fn deferred_constraints_are_checked_before_the_success_is_recorded() {
    let shop = Shop::new("").await;
    let parents = "CREATE TABLE parents (id int PRIMARY KEY);
        CREATE TABLE later (parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED)";
    sqlx::raw_sql(parents).execute(shop.platform.store().pool()).await.unwrap();
    let _worker = shop.worker(&[]);
    run(&shop, &[INSERT, "INSERT INTO later VALUES (7)"], false).await;
    let refused =
        "sexton.executions WHERE state = 'failed' AND error_class = 'foreign_key_violation'";
    shop.until(refused, 1).await;
    assert_eq!(shop.count("effects").await, 0);
}

/// A deferred constraint, which takes ten minutes to check at the commit.
const SLOW_CONSTRAINT: &str = "
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_sleep(600); RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION slow()";

async fn asking(shop: &Shop) {
    sqlx::raw_sql(SLOW_CONSTRAINT).execute(shop.platform.store().pool()).await.unwrap();
}

#[tokio::test]
async fn a_cancel_is_noticed_during_the_check_of_deferred_constraints() {
    let shop = Shop::new("lease = \"1h\"").await;
    asking(&shop).await;
    let _worker = shop.worker(&[]);
    let id = run(&shop, &[INSERT], false).await;
    until_running(&shop, "SET CONSTRAINTS", 1).await;
    shop.cancel(&id).await;
    shop.until("sexton.executions WHERE state = 'cancelled' AND attempt = 1", 1).await;
    until_running(&shop, "SET CONSTRAINTS", 0).await;
    assert_eq!(shop.count("effects").await, 0);
}

#[tokio::test]
async fn a_timeout_is_noticed_during_the_check_of_deferred_constraints() {
    let shop = Shop::new("timeout = \"2s\"\nretry = { max_timeouts = 1 }").await;
    asking(&shop).await;
    let _worker = shop.worker(&[]);
    run(&shop, &[INSERT], false).await;
    shop.until("sexton.all_attempts WHERE number = 1 AND outcome = 'timeout'", 1).await;
    until_running(&shop, "SET CONSTRAINTS", 0).await;
    assert_eq!(shop.count("effects").await, 0);
}

#[tokio::test]
async fn a_handler_stopped_in_a_statement_leaves_nothing_in_the_server() {
    let shop = Shop::new("lease = \"1h\"").await;
    let mut worker = shop.worker(&[]);
    let id = run(&shop, &[INSERT, "SELECT pg_sleep(600)"], false).await;
    until_running(&shop, "pg_sleep", 1).await;
    shop.cancel(&id).await;
    shop.until("sexton.executions WHERE state = 'cancelled' AND attempt = 1", 1).await;
    until_running(&shop, "pg_sleep", 0).await;
    assert_eq!(shop.count("effects").await, 0);
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
}

#[tokio::test]
async fn a_transaction_that_a_handler_left_to_a_task_of_its_own_ends_with_the_attempt() {
    let shop = Shop::new("lease = \"1h\"").await;
    let _worker = shop.worker(&[]);
    let statements = [INSERT, "SELECT pg_sleep(600)", "COMMIT"];
    let left = serde_json::json!({"do": "detach", "run": statements});
    shop.trigger("careless", &left.to_string()).await;
    until_running(&shop, "pg_sleep", 1).await;
    shop.release();
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    until_running(&shop, "pg_sleep", 0).await;
    // The handler's next statement fails, and its connection is free again: the worker has only one.
    let file = shop.platform.folder().join("detached");
    let task_output =
        async || std::fs::read_to_string(&file).ok().filter(|task_output| !task_output.is_empty());
    let task_output = shop.platform.eventually("it has ended", FINAL_TIMEOUT, task_output).await;
    assert!(task_output.contains("terminating connection"), "{task_output}");
    assert_eq!(shop.count("effects").await, 0);
    run(&shop, &[INSERT], false).await;
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 2).await;
    assert_eq!(shop.count("effects").await, 1);
}

#[tokio::test]
async fn a_handler_that_does_not_complete_in_its_transaction_is_warned() {
    let shop = Shop::new("").await;
    let worker = shop.worker(&[]);
    let forgets = |run: &[&str]| serde_json::json!({"do": "forget", "run": run}).to_string();
    shop.trigger("careless", &forgets(&[INSERT])).await;
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    assert_eq!(shop.count("effects").await, 0);
    let message = "succeeded without `ctx.complete_in(tx)`";
    let logged = format!("sexton.attempt_output WHERE content LIKE '%{message}%'");
    assert_eq!(shop.count(&logged).await, 1);
    assert!(worker.log().contains(message), "{}", worker.log());
    // One that has committed by itself is found out all the same.
    shop.trigger("careless", &forgets(&[INSERT, "COMMIT"])).await;
    let refused = "sexton.executions WHERE state = 'failed'
        AND error_class = 'invalid_transaction_termination'";
    shop.until(refused, 1).await;
    assert_eq!(shop.count("sexton.all_attempts").await, 2);
    // And nobody else is warned.
    run(&shop, &[INSERT], false).await;
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 2).await;
    assert_eq!(shop.count(&logged).await, 1);
}

#[tokio::test]
async fn a_success_is_recorded_while_all_threads_of_the_handlers_are_blocked() {
    let shop = Shop::new("").await;
    let _worker = shop.worker(&[("TOKIO_WORKER_THREADS", "1")]);
    let holds = serde_json::json!({"run": [INSERT], "hold": true}).to_string();
    shop.trigger("statements", &holds).await;
    // Nobody has released the thread yet.
    shop.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    assert_eq!(shop.count("effects").await, 1);
    shop.release();
}

#[tokio::test]
async fn a_worker_that_dies_between_a_handler_s_answer_and_the_commit_has_done_all_or_nothing() {
    for (point, attempts) in
        [("worker.sql_ran", 2), ("worker.sql_settled", 2), ("worker.sql_committed", 1)]
    {
        let shop = Shop::new("").await;
        let mut doomed = shop.worker(&[("FAULT_POINT", point)]);
        run(&shop, &[INSERT], false).await;
        assert_eq!(doomed.exit(FINAL_TIMEOUT).await.signal(), Some(9), "{point}: {}", doomed.log());
        assert_eq!(shop.count("effects").await, 2 - attempts, "{point}");
        let _successor = shop.worker(&[]);
        shop.until(
            &format!("sexton.executions WHERE state = 'succeeded' AND attempt = {attempts}"),
            1,
        )
        .await;
        assert_eq!(shop.count("effects").await, 1, "{point}");
        assert_eq!(shop.count("sexton.all_attempts").await, attempts, "{point}");
    }
}
