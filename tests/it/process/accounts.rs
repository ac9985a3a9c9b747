//! Money that tasks move between accounts while their workers die all the time: transfers that are claimed
//! at once, and counted to the cent when all of them have succeeded.

use std::time::Duration;

use sexton_tests::platform::{Platform, Program};
use uuid::Uuid;

use super::{FINAL_TIMEOUT, count};

/// The accounts, with a million cents each, and what was moved between them.
pub(super) const SCHEMA: &str = "
    CREATE TABLE accounts (id int PRIMARY KEY, cents bigint NOT NULL);
    INSERT INTO accounts SELECT n, 1000000 FROM generate_series(0, 39) n;
    -- No key is unique: a transfer that is done twice shows.
    CREATE TABLE transfers (key text NOT NULL, giver int NOT NULL, taker int NOT NULL, cents bigint NOT NULL);
";
const ACCOUNTS: i64 = 40;
/// Of the job: what a kill costs must not use it up.
pub(super) const RETRY: &str = "retry = { max_retries = 50, delay = \"1s\", multiplier = 1.0 }";

/// So many transfers, each an execution of one job.
pub(super) struct Transfers<'a> {
    platform: &'a Platform,
    number: i64,
}

impl<'a> Transfers<'a> {
    /// Claims all of them at once; the relay publishes them. The amount is to be the task's result.
    pub(super) async fn claim(platform: &'a Platform, job: &str, task: &str, number: i64) -> Self {
        let ids: Vec<Uuid> = (0..number).map(|_| Uuid::now_v7()).collect();
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
                 params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
             SELECT id, (SELECT id FROM sexton.jobs WHERE name = $3), 'k' || n, now(), 'pending', $4, 'default',
                 jsonb_build_object('giver', n % $2, 'taker', (n * 7 + 3) % $2, 'cents', n % 977 + 1),
                 'a.b:k' || n, 'test:1', now(), now(), now()
             FROM unnest($1::uuid[]) WITH ORDINALITY AS t (id, n)",
        )
        .bind(&ids)
        .bind(ACCOUNTS)
        .bind(job)
        .bind(task)
        .execute(platform.store().pool())
        .await
        .unwrap();
        Self { platform, number }
    }

    /// Has them done by two workers, of which one is killed, and started again, whenever another of
    /// `kills` + 2 parts is done. Returns how many were killed.
    pub(super) async fn run(&self, kills: i64, start: impl Fn(&str) -> Program) -> i64 {
        let mut workers = [start("w1"), start("w2")];
        let (mut killed, begun) = (0, tokio::time::Instant::now());
        loop {
            let done = count(self.platform, "sexton.executions WHERE state = 'succeeded'").await;
            if done == self.number {
                return killed;
            }
            assert!(begun.elapsed() < FINAL_TIMEOUT * 3, "{}", self.platform.log_tails());
            // By progress, not by time: a slow machine has as many.
            if killed < kills && done > (killed + 1) * self.number / (kills + 2) {
                let turn = (killed % 2) as usize;
                workers[turn].kill();
                workers[turn] = start(["w1", "w2"][turn]);
                killed += 1;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Each has happened once, to the cent, though kills hit attempts.
    pub(super) async fn happened_once_each(&self) {
        let count = async |what| count(self.platform, what).await;
        assert!(
            count("sexton.all_attempts WHERE outcome = 'lost'").await > 0,
            "no kill hit an attempt"
        );
        assert_eq!(count("transfers").await, self.number);
        assert_eq!(count("(SELECT DISTINCT key FROM transfers) t").await, self.number);
        let sum = "(SELECT sum(cents) AS total FROM accounts) t WHERE total = 40 * 1000000";
        assert_eq!(count(sum).await, 1);
        let wrong = "accounts a WHERE cents <> 1000000
            + coalesce((SELECT sum(cents) FROM transfers WHERE taker = a.id), 0)
            - coalesce((SELECT sum(cents) FROM transfers WHERE giver = a.id), 0)";
        assert_eq!(count(wrong).await, 0);
        assert_eq!(count("sexton.executions WHERE result = params -> 'cents'").await, self.number);
    }
}
