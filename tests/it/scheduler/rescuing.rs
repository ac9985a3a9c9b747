//! The rescuer: attempts whose worker was never heard of again.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::retry::{Decision, RetryPolicy};
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::maintenance::rescuer::{Rescuer, RescuerReport};
use sexton_scheduler::maintenance::stopwatch::Stopwatch;
use sexton_store::lease::{AttemptFence, Renewal, renew};
use sexton_store::lost_attempts::{self, LossGrounds};
use sexton_store::running_attempts;
use sexton_tests::factory::NewExecution;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Fixture, at, now};

const LEASE: Duration = Duration::from_secs(20);

/// A rescuer and the clock by which it judges. The database's clock is another: it is handed to each round.
struct Observer {
    rescuer: Rescuer,
    elapsed: Arc<Mutex<Duration>>,
}

impl Observer {
    fn new(f: &Fixture, relay: &Arc<Notify>) -> Self {
        let defaults = RetryPolicy { max_crashes: 2, ..RetryPolicy::default() };
        let (begun, elapsed) = (Instant::now(), Arc::new(Mutex::default()));
        let read = Arc::clone(&elapsed);
        let stopwatch = Stopwatch::new(move || begun + *read.lock().unwrap());
        let rescuer =
            Rescuer::new(f.store(), defaults, Arc::clone(relay)).with_stopwatch(stopwatch);
        Self { rescuer, elapsed }
    }

    /// A round, so many milliseconds after this observer has begun, at a second of the database's clock.
    async fn round(&self, millis: u64, second: i64) -> RescuerReport {
        *self.elapsed.lock().unwrap() = Duration::from_millis(millis);
        self.rescuer.run_once(now(second)).await.unwrap()
    }

    /// As if it had seen all there is for a whole lease, all within one second of the database's clock.
    async fn waits_for_a_lease(&self, second: i64) -> RescuerReport {
        let seen = self.round(0, second).await;
        assert_eq!((seen.found, seen.lost), (0, 0), "it has just begun");
        self.round(20_000, second).await
    }
}

#[tokio::test]
async fn a_lost_attempt_is_retried_at_once_and_the_relay_is_notified() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Running, 0).await;
    let relay = Arc::default();
    let rescued = Observer::new(&f, &relay).waits_for_a_lease(21).await;
    assert_eq!((rescued.watched, rescued.found, rescued.lost), (1, 1, 1));
    assert_eq!(f.state(id).await, "retrying/2, unpublished");
    let due = f.column(id, "(next_attempt_at <= to_timestamp(1800000021))").await;
    assert_eq!(due.as_deref(), Some("true"));
    assert_eq!(f.column(id, "crashes_used").await.as_deref(), Some("1"));
    timeout(Duration::ZERO, relay.notified()).await.expect("the relay is woken");
    let lost = "SELECT count(*) FROM sexton.all_attempts WHERE outcome = 'lost' AND finished_at IS NOT NULL";
    assert_eq!(f.number(lost).await, 1);
}

#[tokio::test]
async fn the_rescuer_leaves_a_running_lease_alone() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Running, 0).await;
    let observer = Observer::new(&f, &Arc::default());
    assert_eq!(observer.round(0, 1).await, RescuerReport { watched: 1, found: 0, lost: 0 });
    assert_eq!(observer.round(19_999, 20).await.found, 0);
    assert_eq!(f.state(id).await, "running/1");
    assert_eq!(observer.round(20_000, 21).await.lost, 1);
}

#[tokio::test]
async fn the_rescuer_ends_an_attempt_after_one_lease_by_its_own_clock_whatever_the_database_clock_says()
 {
    let hour = 3_600;
    for (seconds, settled) in [
        ([60, 61, 80], "ahead by a minute"),
        ([hour, hour + 1, hour + 20], "ahead by an hour"),
        ([-hour, 1 - hour, 20 - hour], "back by an hour"),
        ([0, 0, 0], "it stands still"),
        ([hour, -hour, 0], "there and back"),
    ] {
        let f = Fixture::without_broker().await;
        let id = f.execution(State::Running, 0).await;
        let observer = Observer::new(&f, &Arc::default());
        observer.round(0, 0).await;
        for (millis, second) in [1_000, 2_000, 19_999].into_iter().zip(seconds) {
            assert_eq!(
                observer.round(millis, second).await.found,
                0,
                "{settled}, after {millis} ms"
            );
        }
        assert_eq!(f.state(id).await, "running/1", "{settled}");
        assert_eq!(observer.round(20_000, seconds[2]).await.lost, 1, "{settled}");
        assert_eq!(f.state(id).await, "retrying/2, unpublished", "{settled}");
    }
}

#[tokio::test]
async fn a_new_rescuer_waits_for_one_lease_whatever_the_age_of_the_last_renewal() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Running, 0).await;
    let old = Observer::new(&f, &Arc::default());
    old.round(0, 1).await;
    // A year by the database's clock, and the scheduler was started a moment ago.
    let fresh = Observer::new(&f, &Arc::default());
    assert_eq!(fresh.round(0, 31_536_000).await.found, 0);
    assert_eq!(fresh.round(19_999, 31_536_020).await.found, 0);
    assert_eq!(f.state(id).await, "running/1");
    assert_eq!(old.round(20_000, 31_536_020).await.lost, 1, "one that had seen it need not wait");
}

/// Renews the attempt of `id` as its worker does, at a second of the database's clock.
async fn renewed(f: &Fixture, id: ExecutionId, second: i64) {
    let token = f.column(id, "open_token").await.unwrap().parse().unwrap();
    let held = AttemptFence { execution_id: id, attempt: AttemptNumber::FIRST, token };
    let answer = renew(&f.store(), &[(held, LEASE)], now(second)).await.unwrap();
    assert_eq!(answer, [Renewal::Renewed { cancel_requested: false }]);
}

#[tokio::test]
async fn every_renewal_counts_even_one_that_writes_the_same_instant_again() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Running, 0).await;
    let observer = Observer::new(&f, &Arc::default());
    observer.round(0, 0).await;
    // The database's clock stands still.
    for step in 1..=6 {
        renewed(&f, id, 0).await;
        assert_eq!(f.column(id, "(lease_until = to_timestamp(1800000020))").await.unwrap(), "true");
        assert_eq!(observer.round(step * 15_000, 0).await.found, 0);
    }
    assert_eq!(observer.round(6 * 15_000 + 20_000, 0).await.lost, 1);
}

#[tokio::test]
async fn each_attempt_is_judged_by_the_lease_that_it_was_opened_with() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let mut ids = Vec::new();
    for seconds in [1, 60, 3_600] {
        let mut execution = NewExecution::new(job, State::Running, at(0));
        execution.lease = TimeDelta::seconds(seconds);
        ids.push(f.insert(execution).await);
    }
    // What the job says by now was not known to the worker that opened them.
    sqlx::query("UPDATE sexton.jobs SET lease_ms = 1000").execute(f.db.pool()).await.unwrap();
    let observer = Observer::new(&f, &Arc::default());
    observer.round(0, 10_000).await;
    for (millis, lost, rest) in [(1_000, 1, 2), (59_999, 0, 2), (60_000, 1, 1), (3_600_000, 1, 0)] {
        assert_eq!(observer.round(millis, 10_000).await.lost, lost, "after {millis} ms");
        let running =
            f.number("SELECT count(*) FROM sexton.executions WHERE state = 'running'").await;
        assert_eq!(running, rest);
    }
}

/// A running execution whose `lease_until` is a minute after the open, and whose lease stands in the attempt's row, or nowhere.
async fn opened_by_an_older_version(f: &Fixture, lease_ms: Option<i64>) -> ExecutionId {
    let mut execution = NewExecution::new(f.any_job().await, State::Running, at(0));
    execution.lease = TimeDelta::seconds(60);
    let id = f.insert(execution).await;
    sqlx::query(
        "WITH e AS (UPDATE sexton.executions SET lease_ms = NULL RETURNING id, attempt, worker_id, started_at)
         INSERT INTO sexton.attempts (execution_id, number, worker_id, lease_ms, opened_at)
         SELECT id, attempt, worker_id, $1, started_at FROM e",
    )
    .bind(lease_ms)
    .execute(f.db.pool())
    .await
    .unwrap();
    id
}

#[tokio::test]
async fn an_attempt_of_a_previous_worker_version_is_lost_only_if_the_database_clock_agrees() {
    let f = Fixture::without_broker().await;
    let id = opened_by_an_older_version(&f, None).await;
    let observer = Observer::new(&f, &Arc::default());
    observer.round(0, 3_600).await;
    // Nobody knows the lease. From its opening to its end it is a minute, so it is not longer.
    assert_eq!(observer.round(59_999, 3_600).await.found, 0);
    assert_eq!(observer.round(60_000, 59).await.found, 0, "not over by the database's clock");
    assert_eq!(observer.round(60_000, 61).await.lost, 1);
    assert_eq!(f.state(id).await, "retrying/2, unpublished");
}

#[tokio::test]
async fn an_attempt_that_the_version_before_opened_is_judged_by_the_lease_in_its_row() {
    let f = Fixture::without_broker().await;
    let id = opened_by_an_older_version(&f, Some(30_000)).await;
    let observer = Observer::new(&f, &Arc::default());
    observer.round(0, 0).await;
    assert_eq!(observer.round(29_999, 0).await.found, 0);
    assert_eq!(observer.round(30_000, 0).await.lost, 1);
    assert_eq!(f.state(id).await, "retrying/2, unpublished");
    let row = "SELECT count(*) FROM sexton.attempts WHERE outcome = 'lost' AND lease_ms = 30000";
    assert_eq!(f.number(row).await, 1, "its row is completed");
}

#[tokio::test]
async fn the_rescuer_observes_anew_on_another_server() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Running, 0).await;
    let observer = Observer::new(&f, &Arc::default());
    observer.round(0, 0).await;
    let seen = running_attempts::list_page(&f.store(), None, 10, now(0)).await.unwrap();
    assert_eq!(seen.len(), 1);
    // A standby that takes over may lack the last renewals, so nothing that was seen before counts.
    let mut elsewhere = seen.clone();
    elsewhere[0].renewed.server += TimeDelta::microseconds(1);
    let grounds = LossGrounds::Unrenewed(&elsewhere);
    let found = lost_attempts::find(&f.store(), &grounds, 10).await.unwrap();
    let verdict = Decision::Fail { used: found[0].used };
    let lost = [(found[0].clone(), verdict)];
    let ended = lost_attempts::settle(&f.store(), &grounds, &lost, now(100)).await.unwrap();
    assert_eq!(ended, []);
    assert_eq!(f.state(id).await, "running/1");
    assert_ne!(
        elsewhere[0].renewed, seen[0].renewed,
        "the same row of another server is another renewal"
    );
}

#[tokio::test]
async fn an_execution_that_loses_its_workers_over_the_budget_is_parked() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let mut execution = NewExecution::new(job, State::Running, at(0)).attempt(2);
    execution.crashes_used = 1;
    let id = f.insert(execution).await;
    Observer::new(&f, &Arc::default()).waits_for_a_lease(21).await;
    assert_eq!(f.state(id).await, "failed/3, unpublished");
    assert_eq!(f.column(id, "error_class").await.as_deref(), Some("lost"));
}

#[tokio::test]
async fn a_lost_attempt_that_was_to_be_cancelled_is_cancelled() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let mut execution = NewExecution::new(job, State::Running, at(0)).published();
    execution.cancel_requested = true;
    let id = f.insert(execution).await;
    Observer::new(&f, &Arc::default()).waits_for_a_lease(21).await;
    assert_eq!(f.state(id).await, "cancelled/1");
}

#[tokio::test]
async fn two_rescuers_at_once_end_each_lost_attempt_once() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    for _ in 0..50 {
        let mut execution = NewExecution::new(job, State::Running, at(0));
        execution.lease = TimeDelta::seconds(1);
        f.insert(execution).await;
    }
    let relay = Arc::default();
    let (one, two) = (Observer::new(&f, &relay), Observer::new(&f, &relay));
    let (first, second) = tokio::join!(one.round(0, 5), two.round(0, 5));
    assert_eq!((first.watched, second.watched), (50, 50));
    let (first, second) = tokio::join!(one.round(1_000, 5), two.round(1_000, 5));
    let mut lost = first.lost + second.lost;
    // A row that the other one held for a moment is passed over, and met again.
    lost += one.round(1_000, 5).await.lost;
    assert_eq!(lost, 50);
    assert_eq!(f.number("SELECT count(*) FROM sexton.executions WHERE attempt = 2").await, 50);
}

#[tokio::test]
async fn more_open_attempts_than_are_watched_at_a_time_are_watched_when_others_have_ended() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    for second in 0..10 {
        f.insert(NewExecution::new(job, State::Running, at(second))).await;
    }
    let mut observer = Observer::new(&f, &Arc::default());
    // In pages of two, at most five.
    observer.rescuer = observer.rescuer.with_limits(2, 5);
    assert_eq!(observer.round(0, 100).await.watched, 5);
    assert_eq!(observer.round(20_000, 100).await, RescuerReport { watched: 5, found: 5, lost: 5 });
    assert_eq!(observer.round(20_001, 100).await, RescuerReport { watched: 5, found: 0, lost: 0 });
    assert_eq!(observer.round(40_001, 100).await, RescuerReport { watched: 5, found: 5, lost: 5 });
    assert_eq!(observer.round(40_002, 100).await, RescuerReport::default());
}
