//! Money is moved between accounts by a handler while its workers die all the time; as
//! `it::process::sql::transfers`, in small.

use std::time::Duration;

use sexton_tests::platform::Program;
use uuid::Uuid;

use super::{IN_THE_END, Shop};

const TRANSFERS: i64 = 1_200;
const ACCOUNTS: i64 = 40;
const KILLS: i64 = 6;

const SCHEMA: &str = "
    CREATE TABLE accounts (id int PRIMARY KEY, cents bigint NOT NULL);
    INSERT INTO accounts SELECT n, 1000000 FROM generate_series(0, 39) n;
    -- No key is unique: a transfer that is done twice shows.
    CREATE TABLE transfers (key text NOT NULL, giver int NOT NULL, taker int NOT NULL, cents bigint NOT NULL);
";

/// Claims all transfers at once; the relay publishes them.
async fn claim(shop: &Shop) {
    let ids: Vec<Uuid> = (0..TRANSFERS).map(|_| Uuid::now_v7()).collect();
    sqlx::query(
        "INSERT INTO executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
             params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
         SELECT id, (SELECT id FROM jobs WHERE name = 'a.transfer'), 'k' || n, now(), 'pending',
             'transfer', 'default',
             jsonb_build_object('giver', n % $2, 'taker', (n * 7 + 3) % $2, 'cents', n % 977 + 1),
             'a.b:k' || n, 'test:1', now(), now(), now()
         FROM unnest($1::uuid[]) WITH ORDINALITY AS t (id, n)",
    )
    .bind(&ids)
    .bind(ACCOUNTS)
    .execute(shop.platform.store().pool())
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_of_a_handler_under_repeated_kills_of_its_workers_happen_once_each() {
    let shop = Shop::new("retry = { max_retries = 50, delay = \"1s\", multiplier = 1.0 }").await;
    sqlx::raw_sql(SCHEMA).execute(shop.platform.store().pool()).await.unwrap();
    claim(&shop).await;
    let start = |name: &str| -> Program {
        let env = [("WORKER_SLOTS", "16"), ("LEASE_MS", "5000")];
        shop.platform.start_handlers(name, &env).unwrap()
    };
    let mut workers = [start("w1"), start("w2")];
    let (mut kills, begun) = (0, tokio::time::Instant::now());
    loop {
        let done = shop.count("executions WHERE state = 'succeeded'").await;
        if done == TRANSFERS {
            break;
        }
        assert!(begun.elapsed() < IN_THE_END * 3, "{}", shop.platform.log_tails());
        // By progress, not by time: a slow machine has as many.
        if done > (kills + 1) * TRANSFERS / (KILLS + 2) && kills < KILLS {
            let turn = (kills % 2) as usize;
            workers[turn].kill();
            workers[turn] = start(["w1", "w2"][turn]);
            kills += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(kills, KILLS);
    assert!(shop.count("attempts WHERE outcome = 'lost'").await > 0, "no kill hit an attempt");
    assert_eq!(shop.count("transfers").await, TRANSFERS);
    assert_eq!(shop.count("(SELECT DISTINCT key FROM transfers) t").await, TRANSFERS);
    let wrong = "accounts a WHERE cents <> 1000000
        + coalesce((SELECT sum(cents) FROM transfers WHERE taker = a.id), 0)
        - coalesce((SELECT sum(cents) FROM transfers WHERE giver = a.id), 0)";
    assert_eq!(shop.count(wrong).await, 0);
    assert_eq!(shop.count("executions WHERE result = params -> 'cents'").await, TRANSFERS);
}
