//! What statements die of, what it means, and what they leave behind: nothing.

use serde_json::json;

use super::{Bank, by_hand};

const RETRY: &str = "retry = { delay = \"1s\", max_retries = 3 }";

#[tokio::test]
async fn a_statement_commits_its_effect_and_result_with_its_success() {
    let prepared = "CREATE TABLE outbox (at timestamptz, key text, said text)";
    let statement = "sql = \"insert into outbox values ($3, $2, $1 ->> 'to') returning \
                     jsonb_build_object('key', key, 'at', at, 'sum', 12345678.90)\"";
    let bank = Bank::new(prepared, statement, "params = { to = \"world\" }").await;
    let _worker = bank.worker(&[]);
    bank.trigger("k").await;
    bank.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    bank.until("outbox JOIN sexton.executions ON at = scheduled_for WHERE said = 'world'", 1).await;
    let shown = bank.shown().await;
    assert_eq!(shown["result"]["key"], "a.b:k");
    assert_eq!(shown["result"]["sum"], json!(12_345_678.90));
    assert_eq!(shown["attempts"][0]["result"], shown["result"]);
}

#[tokio::test]
async fn a_statement_s_end_is_recorded_as_its_end_and_not_as_its_beginning() {
    let bank = Bank::new("", "sql = \"select pg_sleep(1)\"", "").await;
    let _worker = bank.worker(&[]);
    bank.trigger("k").await;
    bank.until("sexton.executions WHERE state = 'succeeded'", 1).await;
    let long = "interval '1 second'";
    assert_eq!(
        bank.count(&format!("sexton.executions WHERE finished_at - started_at >= {long}")).await,
        1
    );
    assert_eq!(
        bank.count(&format!("sexton.all_attempts WHERE finished_at - opened_at >= {long}")).await,
        1
    );
}

#[tokio::test]
async fn deferred_constraints_take_as_long_as_the_statement_may() {
    // Longer than any of the steps around a statement may.
    let prepared = "
        CREATE TABLE slow (n int);
        CREATE FUNCTION check_slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_sleep(11); RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION check_slowly()";
    let entry = "sql = \"insert into slow values (1)\"";
    let bank = Bank::new(prepared, entry, "").await;
    let _worker = bank.worker(&[]);
    bank.trigger("k").await;
    bank.until("sexton.executions WHERE state IN ('pending', 'running')", 0).await;
    assert_eq!(bank.count("sexton.executions WHERE state = 'succeeded' AND attempt = 1").await, 1);
    assert_eq!(bank.count("slow").await, 1);
}

#[tokio::test]
async fn idle_sessions_ended_by_the_server_cost_no_retry() {
    let statement = "sql = \"select count(*) from gate\"";
    let bank = Bank::new("CREATE TABLE gate (n int)", statement, "").await;
    let _worker = bank.worker(&[("WORKER_SLOTS", "3")]);
    let idle = "pg_stat_activity WHERE datname = current_database() AND state = 'idle'
                AND application_name LIKE 'sexton worker % tasks'";
    for round in 1..=2 {
        // All three run at the same time, so that each has a session.
        let mut gate = bank.platform.store().pool().begin().await.unwrap();
        sqlx::query("LOCK TABLE gate").execute(&mut *gate).await.unwrap();
        for key in ["a", "b", "c"] {
            bank.trigger(&format!("{key}{round}")).await;
        }
        bank.until_running("from gate", 3).await;
        gate.commit().await.unwrap();
        bank.until("sexton.executions WHERE state = 'succeeded' AND attempt = 1", 3 * round).await;
        bank.until(idle, 3).await;
        let ended = format!("(SELECT pg_terminate_backend(pid) FROM {idle}) s");
        assert_eq!(bank.count(&ended).await, 3);
    }
}

/// What is wrong with each, and how it is called.
const HOPELESS: [(&str, &str); 8] = [
    ("selec 1", "syntax_error"),
    ("select 1; select 2", "syntax_error"),
    ("select nothing()", "undefined_function"),
    ("insert into effects select $4::text", "protocol_violation"),
    ("call commits()", "invalid_transaction_termination"),
    ("insert into later values (1, 7)", "foreign_key_violation"),
    ("select 1 / (select count(*) from effects)", "division_by_zero"),
    ("select forbidden()", "insufficient_privilege"),
];

const TRAPS: &str = "
    CREATE TABLE parents (id int PRIMARY KEY);
    CREATE TABLE later (id int, parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
    CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO effects VALUES ('committed'); COMMIT;
    END $$;
    CREATE FUNCTION forbidden() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        SET LOCAL ROLE pg_monitor; PERFORM FROM sexton.executions; RETURN 1;
    END $$;
";

#[tokio::test]
async fn a_permanent_sql_error_is_not_retried_and_is_named() {
    let tasks: Vec<_> = (0..)
        .zip(HOPELESS)
        .map(|(n, (statement, _))| format!("[tasks.t{n}]\nsql = \"{statement}\"\n"))
        .collect();
    let tasks = tasks.concat();
    let bank = Bank::new(TRAPS, &format!("sql = \"select 1\"\n{tasks}"), "").await;
    let _worker = bank.worker(&[]);
    for (n, (statement, class)) in (0..).zip(HOPELESS) {
        bank.platform.apply(&by_hand(&format!("a.t{n}"), &format!("t{n}"), RETRY)).await.unwrap();
        let done = bank.platform.sexton(&["jobs", "trigger", &format!("a.t{n}")]).await;
        assert!(done.status.success(), "{done}");
        let over = format!(
            "sexton.executions WHERE task_type = 't{n}' AND state NOT IN ('pending', 'running')"
        );
        bank.until(&over, 1).await;
        let as_expected =
            format!("{over} AND state = 'failed' AND attempt = 2 AND error_class = '{class}'");
        assert_eq!(bank.count(&as_expected).await, 1, "{statement}: {}", bank.platform.log_tails());
        assert_eq!(bank.count("effects").await + bank.count("later").await, 0, "{statement}");
    }
}

#[tokio::test]
async fn a_lock_timeout_is_retried_later() {
    let prepared = "CREATE TABLE stock (n int); INSERT INTO stock VALUES (0)";
    let entry = "sql = \"update stock set n = n + 1\"\nlock_timeout = \"100ms\"";
    let bank = Bank::new(prepared, entry, RETRY).await;
    let mut other = bank.platform.store().pool().begin().await.unwrap();
    sqlx::query("UPDATE stock SET n = 10").execute(&mut *other).await.unwrap();
    let _worker = bank.worker(&[]);
    bank.trigger("k").await;
    bank.until(
        "sexton.all_attempts WHERE outcome = 'error' AND error_class = 'lock_not_available'",
        1,
    )
    .await;
    other.commit().await.unwrap();
    bank.until("sexton.executions WHERE state = 'succeeded'", 1).await;
    assert_eq!(bank.count("stock WHERE n = 11").await, 1);
}

#[tokio::test]
async fn a_deadlock_rolls_the_task_back_and_retries_it() {
    // The server looks for a deadlock when the task has waited for so long; the other never looks.
    let prepared = "
        CREATE TABLE stock (id int, n int); INSERT INTO stock VALUES (1, 0), (2, 0);
        CREATE FUNCTION twice() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            SET LOCAL deadlock_timeout = '5s';
            UPDATE stock SET n = n + 1 WHERE id = 1; UPDATE stock SET n = n + 1 WHERE id = 2;
        END $$";
    let bank = Bank::new(prepared, "sql = \"select twice()\"\nlock_timeout = \"1m\"", RETRY).await;
    let mut other = bank.platform.store().pool().begin().await.unwrap();
    sqlx::raw_sql("SET LOCAL deadlock_timeout = '10min'; UPDATE stock SET n = 10 WHERE id = 2")
        .execute(&mut *other)
        .await
        .unwrap();
    let _worker = bank.worker(&[]);
    bank.trigger("k").await;
    bank.until_running("twice()' AND wait_event_type = 'Lock' AND query LIKE '", 1).await;
    // Waits for the task, until that is the victim.
    sqlx::query("UPDATE stock SET n = 10 WHERE id = 1").execute(&mut *other).await.unwrap();
    other.commit().await.unwrap();
    bank.until("sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    bank.until("sexton.all_attempts WHERE number = 1 AND error_class = 'deadlock_detected'", 1)
        .await;
    assert_eq!(bank.count("stock WHERE n = 11").await, 2);
}

#[tokio::test]
async fn session_settings_of_a_statement_do_not_leak_into_the_settlement_or_the_next_task() {
    let prepared = "
        CREATE TABLE seen (path text, work text, role text, temporary bigint);
        CREATE FUNCTION untidy() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen SELECT current_setting('search_path'), current_setting('work_mem'),
                current_user, (SELECT count(*) FROM pg_class WHERE relpersistence = 't');
            PERFORM set_config('search_path', 'pg_catalog', false);
            PERFORM set_config('work_mem', '65kB', false);
            PERFORM set_config('synchronous_commit', 'off', false);
            PERFORM pg_advisory_lock(4891);
            CREATE TEMPORARY TABLE executions (LIKE sexton.executions);
            CREATE TEMPORARY TABLE attempts (LIKE sexton.attempts);
            SET ROLE pg_monitor;
            RETURN current_user;
        END $$";
    let bank = Bank::new(prepared, "sql = \"select untidy()\"", "").await;
    let _worker = bank.worker(&[]);
    for key in ["a", "b", "c"] {
        bank.trigger(key).await;
        bank.until("sexton.executions WHERE state IN ('running', 'pending')", 0).await;
    }
    bank.until("sexton.executions WHERE state = 'succeeded'", 3).await;
    bank.until("sexton.all_attempts WHERE outcome = 'succeeded'", 3).await;
    assert_eq!(bank.count("seen").await, 3);
    assert_eq!(bank.count("(SELECT DISTINCT * FROM seen) s WHERE temporary = 0").await, 1);
    bank.until("pg_locks WHERE locktype = 'advisory' AND objid = 4891", 0).await;
}
