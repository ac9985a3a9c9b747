//! PostgreSQL's clock is set while tasks run: ahead by a minute, ahead by an hour, back by an hour.
//!
//! Nothing of it may end an attempt whose worker lives, also where a scheduler has just been started and knows of
//! no renewal but an old one; and an attempt whose worker is dead is tried again as soon as ever. The ledger that
//! the tasks themselves write, under locks, says what ran beside what.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_servers::{PostgresOptions, PostgresServer, shared};
use sexton_tests::platform::{Platform, Program};
use tokio::time::Instant;

use super::{BEYOND, FINAL_TIMEOUT, Machine, private};
use crate::process::ledger::Ledger;
use crate::process::{by_hand, count, until};

/// Renewed every two seconds.
const LEASE: Duration = Duration::from_secs(8);
/// Tasks that run while the clock is set, on two workers.
const TASKS: usize = 6;
const HOUR: i64 = 3_600;

/// A platform on a PostgreSQL of its own, whose clock can be set.
struct Scene {
    platform: Platform,
    ledger: Ledger,
    off: i64,
    postgres: PostgresServer,
}

impl Scene {
    /// `task` is shell between the two lines in the ledger.
    async fn new(task: &str) -> Self {
        let options = PostgresOptions { own_clock: true, ..PostgresOptions::default() };
        let (postgres, shared) = tokio::join!(PostgresServer::start_private(options), shared());
        let postgres = postgres.unwrap();
        let mut platform = Platform::on(postgres.url(), &shared.unwrap().amqp_url).await.unwrap();
        let ledger = Ledger::new(&platform, task);
        platform.catalogue(&ledger.catalogue());
        let lease = format!("lease = \"{}s\"", LEASE.as_secs());
        platform.apply(&by_hand("a.b", "work", &lease)).await.unwrap();
        Self { platform, ledger, off: 0, postgres }
    }

    /// Sets the clock by so many seconds, and shows that it is.
    async fn set_clock(&mut self, by: i64) {
        let now = async || -> DateTime<Utc> {
            let query = sqlx::query_scalar("SELECT now()");
            query.fetch_one(self.platform.store().pool()).await.unwrap()
        };
        let before = (now().await, Instant::now());
        self.postgres.set_clock(self.off + by).unwrap();
        let stepped = (now().await - before.0).as_seconds_f64() - before.1.elapsed().as_secs_f64();
        assert!((stepped - by as f64).abs() < 5.0, "set by {stepped} s instead of {by}");
        self.off += by;
    }

    /// Triggers some; returns when all of them have begun.
    async fn begin(&self, tasks: usize) {
        let before = self.ledger.lines("begin").len();
        for _ in 0..tasks {
            let done = self.platform.sexton(&["jobs", "trigger", "a.b"]).await;
            assert!(done.status.success(), "{done}");
        }
        self.begun(before + tasks).await;
    }

    async fn begun(&self, wanted: usize) {
        let begun = async || (self.ledger.lines("begin").len() >= wanted).then_some(());
        self.platform.eventually("the tasks have begun", FINAL_TIMEOUT, begun).await;
    }

    async fn worker(&self, name: &str) -> Program {
        let mut worker = self.platform.start_worker(name, &[]).unwrap();
        worker.ready().await;
        worker
    }

    async fn scheduler(&self, name: &str) -> Program {
        let mut scheduler = self.platform.start_scheduler(name, &[]).unwrap();
        scheduler.ready().await;
        scheduler
    }
}

#[tokio::test]
async fn no_attempt_is_taken_from_a_live_worker_however_postgresql_s_clock_is_set() {
    let _private = private().await;
    // Longer than a lease, so that one that is not renewed in time would be noticed.
    let mut scene = Scene::new("sleep 11").await;
    let mut schedulers = vec![scene.scheduler("s1").await];
    let _workers = [scene.worker("w1").await, scene.worker("w2").await];
    for (round, by) in [60, HOUR, -HOUR, HOUR].into_iter().enumerate() {
        scene.begin(TASKS).await;
        scene.set_clock(by).await;
        if round == 3 {
            // Its first look is at renewals that are an hour old by the database's clock.
            schedulers.pop().unwrap().kill();
            schedulers.push(scene.scheduler("s2").await);
        }
        let ended = TASKS * (round + 1);
        let all = async || (scene.ledger.lines("end").len() >= ended).then_some(());
        scene.platform.eventually("all have ended", FINAL_TIMEOUT, all).await;
        until(&scene.platform, "sexton.executions WHERE state = 'succeeded'", ended as i64).await;
        scene.ledger.no_overlap();
        let runs = scene.ledger.runs();
        assert_eq!(runs.len(), ended, "one run of each: {runs:?}");
        assert!(runs.values().all(|runs| runs.begun == 1 && runs.ended == 1), "{runs:?}");
        let again = "sexton.all_attempts WHERE number > 1 OR outcome <> 'succeeded'";
        assert_eq!(count(&scene.platform, again).await, 0, "after the clock was set by {by} s");
    }
}

#[tokio::test]
async fn the_attempt_of_a_dead_worker_is_retried_soon_however_postgresql_s_clock_is_set() {
    let _private = private().await;
    Box::pin(is_tried_again(Machine::Shared)).await;
}

/// Within its lease and what is promised beyond, by a clock that nobody sets.
pub(super) async fn is_tried_again(machine: Machine) {
    let mut scene = Scene::new("[ $SEXTON_ATTEMPT = 1 ] && sleep 300").await;
    let _scheduler = scene.scheduler("s1").await;
    for (round, by) in [HOUR, -HOUR, -HOUR].into_iter().enumerate() {
        // A name for each: none takes the instance lock of another.
        let mut doomed = scene.worker(&format!("doomed{round}")).await;
        scene.begin(1).await;
        let mut heir = scene.worker(&format!("heir{round}")).await;
        let begun = scene.ledger.lines("begin").len();
        let killed = Instant::now();
        if round == 2 {
            scene.set_clock(by).await;
            doomed.kill();
        } else {
            doomed.kill();
            scene.set_clock(by).await;
        }
        scene.begun(begun + 1).await;
        let after = killed.elapsed();
        println!(
            "MEASURED the clock set by {by} s: the next attempt began {after:?} after the kill, lease {LEASE:?}"
        );
        assert!(after < machine.within(LEASE + BEYOND), "the next attempt began after {after:?}");
        let done = "sexton.executions WHERE state = 'succeeded' AND attempt = 2";
        until(&scene.platform, done, round as i64 + 1).await;
        scene.ledger.no_overlap();
        scene.ledger.each_attempt_once();
        // Of the next round's two workers the one that is to die must be alone.
        heir.kill();
    }
    let lost = "sexton.all_attempts WHERE outcome = 'lost' AND number = 1";
    assert_eq!(count(&scene.platform, lost).await, 3);
}
