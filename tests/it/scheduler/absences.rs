//! All schedulers were away for hours or days: the ledger afterwards is what each policy says, firing
//! by firing.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::id::JobId;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_tests::factory::NewJob;

use super::{Fixture, at, now};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

impl Fixture {
    /// What became of each firing of an hourly job, by its hour since `at(0)`: `run`, why it was
    /// skipped, or the reason of its gap. A firing with two dispositions fails the test.
    pub(super) async fn by_the_hour(&self, job: JobId) -> BTreeMap<i64, String> {
        let mut ledger = BTreeMap::new();
        let mut note = |firing: DateTime<Utc>, what: String| {
            let hour = (firing - at(0)).num_seconds() / HOUR;
            let before = ledger.insert(hour, what.clone());
            assert_eq!(before, None, "hour {hour} has two dispositions, one is {what}");
        };
        let rows: Vec<(DateTime<Utc>, Option<String>)> = sqlx::query_as(
            "SELECT scheduled_for, skip_reason FROM sexton.executions WHERE job_id = $1",
        )
        .bind(job.get())
        .fetch_all(self.db.pool())
        .await
        .unwrap();
        for (firing, skipped) in rows {
            note(firing, skipped.unwrap_or_else(|| "run".to_owned()));
        }
        let gaps: Vec<(DateTime<Utc>, DateTime<Utc>, i32, String)> = sqlx::query_as(
            "SELECT first_firing, last_firing, count, reason FROM sexton.gaps WHERE job_id = $1",
        )
        .bind(job.get())
        .fetch_all(self.db.pool())
        .await
        .unwrap();
        for (first, last, count, reason) in gaps {
            let hours = (last - first).num_hours();
            assert_eq!(hours + 1, i64::from(count), "the count of a gap");
            for hour in 0..=hours {
                note(first + TimeDelta::hours(hour), reason.clone());
            }
        }
        ledger
    }
}

/// The ledger of an hourly job with a window of a day and a limit of 100, by the rules as the page
/// about jobs has them: hour 0 ran, then nobody looked until `now_s`.
pub(super) fn expected(policy: &str, now_s: i64) -> BTreeMap<i64, String> {
    let last = now_s / HOUR;
    let is_on_time = |hour: i64| now_s - hour * HOUR <= 60;
    let in_window = |hour: i64| now_s - hour * HOUR <= DAY;
    let newest_late = (1..=last).rev().find(|hour| !is_on_time(*hour));
    let mut ledger = BTreeMap::from([(0, "run".to_owned())]);
    for hour in 1..=last {
        let what = match policy {
            _ if is_on_time(hour) => "run",
            _ if !in_window(hour) => "outside_window",
            "fire_all" => "run",
            "fire_once" if Some(hour) == newest_late && !is_on_time(last) => "run",
            "fire_once" => "coalesced",
            _ => "misfire_skip",
        };
        ledger.insert(hour, what.to_owned());
    }
    ledger
}

#[tokio::test]
async fn the_ledger_follows_each_misfire_policy_after_hours_and_days_without_a_scheduler() {
    for away_s in [3 * HOUR, 5 * HOUR + 1_800, 3 * DAY, 3 * DAY + 90] {
        let f = Fixture::without_broker().await;
        let mut jobs = Vec::new();
        for policy in ["skip", "fire_once", "fire_all"] {
            let job = NewJob { misfire: policy, ..NewJob::new(policy).cron("0 * * * *", at(0)) };
            jobs.push((policy, f.job(job).await));
        }
        let (planner, _dispatcher) = f.planner();
        assert_eq!(planner.run_once(now(0)).await.unwrap().claimed, 3);
        planner.run_once(now(away_s)).await.unwrap();
        for (policy, job) in jobs {
            assert_eq!(f.by_the_hour(job).await, expected(policy, away_s), "{policy}, {away_s} s");
        }
        assert_eq!(planner.run_once(now(away_s)).await.unwrap().known, 0, "nothing is left");
    }
}

/// A job that fires every second, and a year without schedulers.
#[tokio::test]
async fn a_year_of_missed_seconds_is_one_transaction_with_the_rows_that_the_limit_allows() {
    const YEAR: i64 = 365 * DAY;
    let f = Fixture::without_broker().await;
    let job = NewJob { misfire: "fire_all", ..NewJob::new("often").cron("* * * * * *", at(0)) };
    f.job(job).await;
    let (planner, _dispatcher) = f.planner();
    let done = planner.run_once(now(YEAR)).await.unwrap();
    // A minute on time with both its ends, and the limit of 100.
    assert_eq!((done.claimed, done.missed), (161, YEAR as u64 + 1 - 161));
    assert_eq!(f.number("SELECT sum(count)::bigint FROM sexton.gaps").await, YEAR + 1 - 161);
    assert!(f.number("SELECT count(*) FROM sexton.gaps").await <= 2);
}

#[tokio::test]
async fn a_catch_up_with_a_rate_is_claimed_at_once_and_published_in_turn() {
    let f = Fixture::new().await;
    f.job(NewJob { misfire: "fire_all", ..NewJob::new("rated").cron("* * * * *", at(0)) }).await;
    sqlx::query("UPDATE sexton.jobs SET misfire_rate = '2/m'").execute(f.db.pool()).await.unwrap();
    let (planner, mut dispatcher) = f.planner();
    // Ten are late, and the one of 600 s is on time.
    let done = planner.run_once(now(630)).await.unwrap();
    assert_eq!((done.claimed, done.left_to_relay), (11, 9));
    let (sent, _) = dispatcher.publish_next(now(630)).await.unwrap().unwrap();
    assert_eq!(sent.published.len(), 2, "the first of the late, and the one on time");
    let mut published = Vec::new();
    for second in [640, 659, 660, 689, 690, 895, 900] {
        published.push(f.relay().run_once(now(second)).await.unwrap().published);
    }
    assert_eq!(published, [0, 0, 1, 0, 1, 6, 1]);
    let nominal = "SELECT count(*) FROM sexton.executions
         WHERE next_attempt_at <> to_timestamp(1800000630) + (scheduled_for - to_timestamp(1800000000)) / 2
           AND scheduled_for < to_timestamp(1800000600)";
    assert_eq!(f.number(nominal).await, 0, "in nominal order, one each half minute");
    assert_eq!(f.tickets().await.len(), 11);
}
