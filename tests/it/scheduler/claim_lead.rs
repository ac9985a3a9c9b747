//! A firing is claimed a few milliseconds before it is due, and opened no sooner than it is due.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use lapin::options::BasicPublishOptions;
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use sexton_broker::PoolName;
use sexton_broker::names::main_queue;
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::plan::Cursor;
use sexton_model::state::State;
use sexton_service::clock;
use sexton_store::firing::{
    CLAIM_LEAD_MS, Claim, ClaimTransaction, CursorUpdate, NextClaim, next_claim,
};
use sexton_store::jobs::{Apply, apply};
use sexton_store::waiters;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::platform::Platform;
use uuid::Uuid;

use super::{Fixture, at, now};
use crate::process::{FINAL_TIMEOUT, by_hand, count};

const MINUTELY: &str = "* * * * *";

fn lead() -> TimeDelta {
    TimeDelta::milliseconds(CLAIM_LEAD_MS as i64)
}

impl Fixture {
    async fn cursor(&self, job: JobId, at: DateTime<Utc>) {
        let moving = sqlx::query("UPDATE sexton.jobs SET next_fire_at = $2 WHERE id = $1");
        moving.bind(job.get()).bind(at).execute(self.db.pool()).await.unwrap();
    }

    async fn instant(&self, query: &'static str) -> DateTime<Utc> {
        sqlx::query_scalar(query).fetch_one(self.db.pool()).await.unwrap()
    }
}

#[tokio::test]
async fn a_firing_is_claimed_within_the_lead_and_may_be_opened_when_it_is_due() {
    let f = Fixture::without_broker().await;
    let far_away = clock::now() + TimeDelta::days(1);
    let near = f.job(NewJob::new("a.near").cron(MINUTELY, far_away)).await;
    let beyond = f.job(NewJob::new("a.beyond").cron(MINUTELY, far_away)).await;
    let mut transaction = ClaimTransaction::begin(&f.store(), None).await.unwrap();
    // The time stands still within a transaction; so the test does not depend on how long its steps take.
    let begun = transaction.read_clock(None, "test:1").await.unwrap().now;
    let (due, later) = (begun + lead(), begun + lead() + TimeDelta::microseconds(1));
    f.cursor(near, due).await;
    f.cursor(beyond, later).await;
    let found = transaction.due_jobs(10, &[]).await.unwrap().jobs;
    let names: Vec<&str> = found.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a.near"]);
    let nominal = begun + TimeDelta::milliseconds(2);
    let claim = |key: &str, scheduled_for| Claim {
        id: ExecutionId::new(Uuid::now_v7()),
        job_id: near,
        execution_key: key.to_owned(),
        idempotency_key: key.to_owned(),
        scheduled_for,
        skip_reason: None,
        waits: None,
        after: Duration::ZERO,
        traceparent: None,
        params: None,
        templated: false,
        previous_scheduled_for: None,
    };
    // The second is one that was held ahead of the clock, and is released.
    let mut claims = [claim("cron-1", nominal), claim("cron-2", begun + TimeDelta::hours(1))];
    transaction.insert(&mut claims, "test:1").await.unwrap();
    let next = due + TimeDelta::minutes(1);
    let moved =
        CursorUpdate { job: near, next: Some(Cursor { nominal: next, due: next }), runs: 0 };
    assert_eq!(transaction.advance(&[moved]).await.unwrap(), 1);
    transaction.commit().await.unwrap();

    assert_eq!(f.instant("SELECT max(claimed_at) FROM sexton.executions").await, begun);
    let opened_from = "SELECT min(next_attempt_at) FROM sexton.executions";
    assert_eq!(f.instant(opened_from).await, nominal);
    let opened_from = "SELECT max(next_attempt_at) FROM sexton.executions";
    assert_eq!(f.instant(opened_from).await, due);
    // The firing is accounted for: newer time zone data does not go back to it.
    let until = "SELECT planned_until FROM sexton.jobs WHERE name = 'a.near'";
    assert_eq!(f.instant(until).await, due);
    let NextClaim { at, .. } = next_claim(&f.store(), &[], None).await.unwrap();
    assert_eq!(at, Some(later - lead()));
    // At a given time a firing is claimed when it is due.
    let NextClaim { at, .. } = next_claim(&f.store(), &[], now(0)).await.unwrap();
    assert_eq!(at, Some(later));
}

#[tokio::test]
async fn a_waiter_that_is_admitted_in_the_lead_is_due_at_its_nominal_time() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let id = f.insert(NewExecution::new(job, State::Pending, at(60))).await;
    let wait =
        "UPDATE sexton.executions SET waits = 'queue', relay_after = '9999-01-01 00:00:00+00'";
    sqlx::query(wait).execute(f.db.pool()).await.unwrap();
    let within = at(60) - lead();
    let before = waiters::admit(&f.store(), &[job], Some(within - lead())).await.unwrap();
    // Committed: a transaction that is dropped may hold its locks a while longer.
    assert_eq!(before.commit().await.unwrap().len(), 0, "it is no waiter yet");
    let admission = waiters::admit(&f.store(), &[job], Some(within)).await.unwrap();
    assert_eq!(admission.commit().await.unwrap().len(), 1);
    assert_eq!(f.instant("SELECT admitted_at FROM sexton.executions").await, within);
    assert_eq!(f.instant("SELECT next_attempt_at FROM sexton.executions").await, at(60));
    assert_eq!(f.state(id).await, "pending/1, unpublished");
}

#[tokio::test]
async fn a_firing_that_is_claimed_early_does_not_fire_again_by_an_edited_schedule() {
    let f = Fixture::without_broker().await;
    let edit = async |expression: &str, at: &str| {
        let expression = expression.to_owned();
        let specs = [JobSpec::new("a.job", "work", Schedule::Cron { expression })];
        let request = Apply { specs: &specs, actor: "t", dry_run: false, prune: false };
        let fresh = || JobId::new(Uuid::now_v7());
        apply(&f.store(), request, fresh, Some(at.parse().unwrap())).await.unwrap();
    };
    edit("0 8 * * *", "2026-01-05T00:00:00Z").await;
    let claimed = "UPDATE sexton.jobs SET next_fire_at = '2026-01-06T08:00:00Z',
                   planned_until = '2026-01-05T08:00:00.001Z'";
    sqlx::query(claimed).execute(f.db.pool()).await.unwrap();
    edit("0 8,9 * * *", "2026-01-05T07:59:59.998Z").await;
    let next = f.instant("SELECT next_fire_at FROM sexton.jobs").await;
    assert_eq!(next, "2026-01-05T09:00:00Z".parse::<DateTime<Utc>>().unwrap());
}

const CATALOGUE: &str = "[tasks.noop]\ncommand = [\"/bin/true\"]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn firings_are_claimed_before_they_are_due_and_none_begins_before_it() {
    const FIRINGS: i64 = 5;
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(CATALOGUE);
    let job = "[[job]]\nname = \"a.job\"\ntask = \"noop\"\nevery = \"1s\"\noverlap = \"allow\"\n";
    platform.apply(job).await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    let early = "sexton.executions WHERE state = 'succeeded' AND claimed_at < scheduled_for";
    // A busy machine may wake the scheduler too late, but not always.
    let enough = async || (count(&platform, early).await >= FIRINGS).then_some(());
    platform.eventually("firings are claimed early", Duration::from_mins(5), enough).await;
    let begun_early = "sexton.executions WHERE started_at < scheduled_for";
    assert_eq!(count(&platform, begun_early).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_that_comes_milliseconds_too_early_stays_with_its_worker() {
    const TICKETS: usize = 50;
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(CATALOGUE);
    platform.apply(&by_hand("a.job", "noop", "")).await.unwrap();
    let mut worker =
        platform.start_worker("w1", &[("RUST_LOG", "info,sexton_worker=debug")]).unwrap();
    worker.ready().await;
    let pool = platform.store().pool();
    let job = sqlx::query_scalar("SELECT id FROM sexton.jobs").fetch_one(pool).await.unwrap();
    let connection = Connection::connect(platform.amqp_url(), ConnectionProperties::default());
    let connection = connection.await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let main = ShortString::from(main_queue(platform.namespace(), &PoolName::default_pool()));
    // A busy machine may bring some of them too late, but not all.
    let any_was_kept = || worker.log().contains("a ticket is kept");
    for number in 0.. {
        if number >= TICKETS && any_was_kept() {
            break;
        }
        assert!(number < 100 * TICKETS, "no ticket came early");
        let execution = NewExecution::new(JobId::new(job), State::Pending, clock::now());
        let published = Some(execution.at);
        let id = NewExecution { published, ..execution }.insert(pool).await.unwrap().get();
        let early = "UPDATE sexton.executions SET task_type = 'noop',
                         next_attempt_at = clock_timestamp() + interval '15 ms'
                     WHERE id = $1 RETURNING next_attempt_at";
        let due: DateTime<Utc> = sqlx::query_scalar(early).bind(id).fetch_one(pool).await.unwrap();
        let mut headers = FieldTable::default();
        headers.insert("sexton-attempt".into(), 1_i64.into());
        let properties = BasicProperties::default()
            .with_message_id(ShortString::from(id.to_string()))
            .with_headers(headers);
        let options = BasicPublishOptions::default();
        channel.basic_publish("".into(), main.clone(), options, b"{}", properties).await.unwrap();
        let begun = async || {
            let begun = "SELECT started_at FROM sexton.executions WHERE id = $1";
            sqlx::query_scalar::<_, Option<DateTime<Utc>>>(begun)
                .bind(id)
                .fetch_one(pool)
                .await
                .unwrap()
        };
        let begun = platform.eventually("its task begins", FINAL_TIMEOUT, begun).await;
        assert!(begun >= due, "{begun} is before {due}");
    }
    // Of a ticket that it passes on, as to a delay queue, it says so.
    assert!(!worker.log().contains("a ticket opened nothing"), "{}", worker.log());
}
