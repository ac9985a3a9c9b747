//! Money is moved between accounts while workers die all the time.

use std::time::Duration;

use sexton_tests::platform::Program;
use uuid::Uuid;

use super::{Bank, IN_THE_END};

const TRANSFERS: i64 = 10_000;
const ACCOUNTS: i64 = 40;
/// Cents that each account begins with.
const BEGINNING: i64 = 1_000_000;

const SCHEMA: &str = "
    CREATE TABLE accounts (id int PRIMARY KEY, cents bigint NOT NULL);
    INSERT INTO accounts SELECT n, 1000000 FROM generate_series(0, 39) n;
    -- No key is unique: a transfer that is done twice shows.
    CREATE TABLE transfers (key text NOT NULL, giver int NOT NULL, taker int NOT NULL, cents bigint NOT NULL);
    CREATE FUNCTION transfer(params jsonb, key text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        giver int := params ->> 'giver'; taker int := params ->> 'taker'; moved bigint := params ->> 'cents';
    BEGIN
        PERFORM FROM accounts WHERE id IN (giver, taker) ORDER BY id FOR UPDATE;
        UPDATE accounts SET cents = cents - moved WHERE id = giver;
        UPDATE accounts SET cents = cents + moved WHERE id = taker;
        INSERT INTO transfers VALUES (key, giver, taker, moved);
        RETURN moved;
    END $$;
";

/// Claims all transfers at once; the relay publishes them.
async fn claim(bank: &Bank) {
    let ids: Vec<Uuid> = (0..TRANSFERS).map(|_| Uuid::now_v7()).collect();
    sqlx::query(
        "INSERT INTO executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
             params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
         SELECT id, (SELECT id FROM jobs), 'k' || n, now(), 'pending', 'work', 'default',
             jsonb_build_object('giver', n % $2, 'taker', (n * 7 + 3) % $2, 'cents', n % 977 + 1),
             'a.b:k' || n, 'test:1', now(), now(), now()
         FROM unnest($1::uuid[]) WITH ORDINALITY AS t (id, n)",
    )
    .bind(&ids)
    .bind(ACCOUNTS)
    .execute(bank.platform.store().pool())
    .await
    .unwrap();
}

async fn number(bank: &Bank, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(bank.platform.store().pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_transfers_under_repeated_kills_of_their_workers_happen_once_each() {
    let job = "retry = { max_retries = 50, delay = \"1s\", multiplier = 1.0 }";
    let bank = Bank::new(SCHEMA, "sql = \"select transfer($1, $2)\"", job).await;
    claim(&bank).await;
    let start = |name: &str| -> Program {
        let env = [("WORKER_SLOTS", "24"), ("LEASE_MS", "5000")];
        bank.platform.start_worker(name, &env).unwrap()
    };
    let mut workers = [start("w1"), start("w2")];
    let mut kills = 0;
    let begun = tokio::time::Instant::now();
    let done = "SELECT count(*) FROM executions WHERE state = 'succeeded'";
    let mut next = TRANSFERS / 12;
    while number(&bank, done).await < TRANSFERS {
        assert!(begun.elapsed() < IN_THE_END * 3, "{}", bank.platform.log_tails());
        // By progress, not by time: a slow machine has as many.
        if number(&bank, done).await >= next {
            next += TRANSFERS / 12;
            let turn = kills % workers.len();
            workers[turn].kill();
            workers[turn] = start(["w1", "w2"][turn]);
            kills += 1;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("MEASURED {TRANSFERS} transfers under {kills} kills in {:?}", begun.elapsed());
    assert!(kills >= 8, "only {kills} kills");
    assert!(bank.count("attempts WHERE outcome = 'lost'").await > 0, "no kill hit an attempt");
    assert_eq!(number(&bank, "SELECT count(*) FROM transfers").await, TRANSFERS);
    assert_eq!(number(&bank, "SELECT count(DISTINCT key) FROM transfers").await, TRANSFERS);
    let sum = "SELECT sum(cents)::bigint FROM accounts";
    assert_eq!(number(&bank, sum).await, ACCOUNTS * BEGINNING);
    let wrong = "SELECT count(*) FROM accounts a WHERE cents <> 1000000
        + coalesce((SELECT sum(cents) FROM transfers WHERE taker = a.id), 0)
        - coalesce((SELECT sum(cents) FROM transfers WHERE giver = a.id), 0)";
    assert_eq!(number(&bank, wrong).await, 0);
    let told = "SELECT count(*) FROM executions WHERE result = params -> 'cents'";
    assert_eq!(number(&bank, told).await, TRANSFERS);
}
