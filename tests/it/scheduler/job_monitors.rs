//! Monitors of jobs: real rows, the planner's claims, and the clock stepped; no time passes.

use sexton_model::id::{ExecutionId, JobId};
use sexton_model::state::State;
use sexton_scheduler::alerts::job_monitors::JobMonitors;
use sexton_scheduler::alerts::monitor_round::MonitorReport;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_store::incidents::{Incident, IncidentFilter, list, read_timeline};
use sexton_store::jobs::{pause, resume};
use sexton_store::monitors::{MonitorCheck, take_wakeups};
use sexton_store::operator::AuditContext;
use sexton_tests::factory::{NewExecution, NewJob};
use sqlx::AssertSqlSafe;

use super::{Fixture, at, now};

pub(super) const BY: AuditContext<'static> = AuditContext { actor: "ann", reason: Some("because") };

pub(super) async fn check(f: &Fixture, seconds: i64) -> MonitorReport {
    JobMonitors::new(f.store()).run_once(now(seconds)).await.unwrap()
}

pub(super) async fn sql(f: &Fixture, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(f.db.pool()).await.unwrap();
}

/// All incidents, newest first.
pub(super) async fn incidents(f: &Fixture) -> Vec<Incident> {
    let all = IncidentFilter { with_resolved: true, ..IncidentFilter::default() };
    list(f.db.store(), &all, 100).await.unwrap()
}

/// `cause state occurrences` of each incident, newest first.
pub(super) async fn summary(f: &Fixture) -> Vec<String> {
    let line = |one: Incident| format!("{} {} {}", one.cause, one.state, one.occurrences);
    incidents(f).await.into_iter().map(line).collect()
}

/// Claims what is due.
async fn plan(f: &Fixture, seconds: i64) {
    let (planner, _dispatcher) = f.planner();
    planner.run_once(now(seconds)).await.unwrap();
}

/// A job that fires every five minutes from second 0 on, with these settings.
pub(super) async fn job(f: &Fixture, settings: &str) -> JobId {
    let id = f.job(NewJob::new("a.b").cron("*/5 * * * *", at(0))).await;
    // Made at the test's own time, which is ahead of the server's.
    let made = "created_at = to_timestamp(1799990000), updated_at = to_timestamp(1799990000)";
    sql(f, &format!("UPDATE sexton.jobs SET {made}, {settings}")).await;
    // It has run before.
    f.insert(NewExecution::new(id, State::Succeeded, at(-300))).await;
    id
}

async fn set(f: &Fixture, nominal: i64, settings: &str) {
    let nominal = 1_800_000_000 + nominal;
    let statement = format!(
        "UPDATE sexton.executions SET {settings} WHERE scheduled_for = to_timestamp({nominal})"
    );
    sql(f, &statement).await;
}

const RUNS: &str =
    "state = 'running', open_token = gen_random_uuid(), worker_id = gen_random_uuid(),
    lease_until = to_timestamp(1800000900), next_attempt_at = NULL, ticket_published_at = now()";
const SUCCEEDS: &str =
    "state = 'succeeded', open_token = NULL, worker_id = NULL, lease_until = NULL, lease_ms = NULL";

#[tokio::test]
async fn a_firing_that_has_not_succeeded_in_time_opens_an_incident_and_its_success_resolves_it() {
    let f = Fixture::without_broker().await;
    job(&f, "expect_within_ms = 60000, severity = 'high', labels = '{\"team\": \"billing\"}'")
        .await;
    plan(&f, 0).await;
    let report = check(&f, 1).await;
    assert_eq!((report.judged, report.violated), (1, 0), "{report:?}");
    assert_eq!(report.next.unwrap().as_secs(), 59);
    assert_eq!(check(&f, 59).await.judged, 0, "not due");
    assert_eq!(check(&f, 60).await.violated, 1);
    let incident = &incidents(&f).await[0];
    assert_eq!((incident.name.as_str(), incident.severity.as_str()), ("a.b", "high"));
    assert_eq!((incident.cause.as_str(), incident.opened_at), ("missed", at(60)));
    assert_eq!(incident.labels["team"], "billing");
    assert!(incident.detail.contains("not published yet"), "{}", incident.detail);
    assert_eq!(check(&f, 66).await.violated, 0, "it counts once");

    set(
        &f,
        0,
        &format!(
            "{SUCCEEDS}, started_at = to_timestamp(1800000061), next_attempt_at = NULL, \
                         finished_at = to_timestamp(1800000070)"
        ),
    )
    .await;
    assert_eq!(check(&f, 75).await.recovered, 1);
    assert_eq!(summary(&f).await, ["missed resolved 1"]);
    let kinds: Vec<String> = read_timeline(f.db.store(), incident.id)
        .await
        .unwrap()
        .into_iter()
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, ["opened", "resolved"]);
    // Within minutes the same incident opens again; later a new one.
    plan(&f, 300).await;
    check(&f, 300).await;
    assert_eq!(check(&f, 360).await.violated, 1);
    assert_eq!(summary(&f).await, ["missed open 2"]);
}

#[tokio::test]
async fn late_too_long_and_held_locks_have_causes_of_their_own() {
    let f = Fixture::without_broker().await;
    job(&f, "start_within_ms = 30000, max_runtime_ms = 100000").await;
    plan(&f, 0).await;
    check(&f, 0).await;
    assert_eq!(check(&f, 30).await.violated, 1);
    assert_eq!(summary(&f).await, ["late open 1"]);

    let f = Fixture::without_broker().await;
    job(&f, "start_within_ms = 30000, max_runtime_ms = 100000").await;
    plan(&f, 0).await;
    set(&f, 0, &format!("{RUNS}, started_at = to_timestamp(1800000010)")).await;
    check(&f, 20).await;
    assert_eq!(check(&f, 109).await.violated, 0);
    assert_eq!(check(&f, 110).await.violated, 1);
    assert_eq!(summary(&f).await, ["too_long open 1"]);

    let f = Fixture::without_broker().await;
    job(&f, "expect_within_ms = 60000").await;
    plan(&f, 0).await;
    set(&f, 0, "outcome = 'locked', attempt = 2, state = 'retrying', ticket_published_at = now()")
        .await;
    check(&f, 1).await;
    check(&f, 60).await;
    assert_eq!(summary(&f).await, ["lock_held open 1"]);
}

#[tokio::test]
async fn a_failure_is_reported_at_once_with_worker_error_and_output() {
    let f = Fixture::without_broker().await;
    let job = job(&f, "alert_after = 2").await;
    let failed = |seconds| NewExecution::new(job, State::Failed, at(seconds));
    f.insert(failed(10)).await;
    let report = check(&f, 11).await;
    assert_eq!((report.judged, report.violated), (1, 0), "one failure is not two: {report:?}");
    let second: ExecutionId = f.insert(failed(20)).await;
    assert_eq!(check(&f, 21).await.violated, 1);
    assert_eq!(summary(&f).await, ["failed open 1"]);
    assert_eq!(incidents(&f).await[0].execution_id, Some(second.get()));
    // It is requeued by hand, and fails again.
    sql(&f, "UPDATE sexton.executions SET state = 'pending', finished_at = NULL, next_attempt_at = now()
             WHERE state = 'failed' AND finished_at = to_timestamp(1800000020)").await;
    assert_eq!(check(&f, 30).await.violated, 0);
    sql(&f, "UPDATE sexton.executions SET state = 'failed', attempt = attempt + 1, next_attempt_at = NULL,
             finished_at = to_timestamp(1800000040) WHERE state = 'pending'").await;
    assert_eq!(check(&f, 41).await.violated, 1);
    assert_eq!(summary(&f).await, ["failed open 2"]);
}

#[tokio::test]
async fn paused_deleted_and_unscheduled_jobs_raise_no_alarm_and_triggers_are_watched() {
    let f = Fixture::without_broker().await;
    job(&f, "expect_within_ms = 60000").await;
    pause(f.db.store(), "a.b", BY, now(0)).await.unwrap();
    check(&f, 1).await;
    plan(&f, 4_000).await;
    check(&f, 4_000).await;
    assert_eq!(summary(&f).await, Vec::<String>::new());
    // What the pause has kept from running is not missed either.
    resume(f.db.store(), "a.b", BY, now(4_001)).await.unwrap();
    plan(&f, 4_002).await;
    check(&f, 4_003).await;
    assert_eq!(summary(&f).await, Vec::<String>::new());

    let f = Fixture::without_broker().await;
    let by_hand = f.job(NewJob::new("by.hand")).await;
    sql(&f, "UPDATE sexton.jobs SET expect_within_ms = 60000").await;
    check(&f, 0).await;
    assert_eq!(check(&f, 500_000).await.judged, 0, "it costs nothing while nothing runs");
    f.insert(NewExecution::new(by_hand, State::Pending, at(500_000))).await;
    assert_eq!(check(&f, 500_001).await.judged, 1, "the trigger wakeup the monitor");
    assert_eq!(check(&f, 500_060).await.violated, 1);
}

#[tokio::test]
async fn what_all_schedulers_were_away_for_is_one_violation_of_each_job() {
    let f = Fixture::without_broker().await;
    let id =
        job(&f, "expect_within_ms = 60000, misfire_policy = 'fire_all', misfire_limit = 10").await;
    plan(&f, 0).await;
    check(&f, 1).await;
    set(
        &f,
        0,
        &format!(
            "{SUCCEEDS}, started_at = to_timestamp(1800000002), next_attempt_at = NULL, \
                         finished_at = to_timestamp(1800000009)"
        ),
    )
    .await;
    // A day later: 10 run late, the others did not run at all.
    let late = 86_400;
    let early = check(&f, late).await;
    assert_eq!(early.violated, 0, "no planner has looked since: {early:?}");
    plan(&f, late).await;
    assert_eq!(f.number("SELECT count(*) FROM sexton.gaps WHERE reason = 'over_limit'").await, 1);
    check(&f, late + 15).await;
    let found = incidents(&f).await;
    assert_eq!(found.len(), 1);
    let incident = &found[0];
    assert_eq!((incident.job_id, incident.occurrences), (Some(id.get()), 287), "{incident:?}");
}

/// Both of a pair check at once, many times over: the locks give each monitor to one of them.
#[tokio::test]
async fn of_two_schedulers_one_reports_each_violation() {
    let f = Fixture::without_broker().await;
    let mut expected = 0;
    for number in 0..40 {
        let id = f.job(NewJob::new(format!("job.{number}"))).await;
        f.insert(NewExecution::new(id, State::Failed, at(10 + number))).await;
        expected += 1;
    }
    let (one, two) = (JobMonitors::new(f.store()), JobMonitors::new(f.store()));
    let (mut violated, mut second) = (0, 60);
    while violated < expected && second < 160 {
        let (first, other) = tokio::join!(one.run_once(now(second)), two.run_once(now(second)));
        violated += first.unwrap().violated + other.unwrap().violated;
        second += 1;
    }
    assert_eq!(violated, expected);
    assert_eq!(summary(&f).await, vec!["parked open 1"; 40]);
}

/// Something happens to a job while its monitor is checked: after the check has read, and before it has written.
#[tokio::test]
async fn a_wakeup_that_comes_during_a_check_is_not_lost() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("a.b")).await;
    let store = f.store();
    let check = MonitorCheck::begin(&store, 10, now(0)).await.unwrap();
    let due = &check.due[0];
    let checked = [(due.job, due.memory.clone(), None)];
    let wakeup = "INSERT INTO sexton.monitor_wakeups (job_id) SELECT id FROM sexton.jobs";
    sql(&f, wakeup).await;
    // It neither waits for the check nor is it taken.
    assert_eq!(take_wakeups(&store, 10, now(0)).await.unwrap(), 0);
    check.finish(&checked, &[], &[], at(0)).await.unwrap();
    assert_eq!(take_wakeups(&store, 10, now(0)).await.unwrap(), 1);
    let due =
        "SELECT count(*) FROM sexton.job_monitors WHERE next_check_at <= to_timestamp(1800000000)";
    assert_eq!(f.number(due).await, 1, "it is checked once more");
}

#[tokio::test]
async fn a_job_that_a_newer_version_wrote_holds_up_no_other() {
    let f = Fixture::without_broker().await;
    let newer = f.job(NewJob::new("a.newer")).await;
    let id = f.job(NewJob::new("b.known")).await;
    for job in [newer, id] {
        f.insert(NewExecution::new(job, State::Failed, at(10))).await;
    }
    sql(
        &f,
        "ALTER TABLE sexton.executions DROP CONSTRAINT executions_state, DROP CONSTRAINT executions_finished;
             UPDATE sexton.executions SET state = 'dreaming'
             WHERE job_id = (SELECT id FROM sexton.jobs WHERE name = 'a.newer')",
    )
    .await;
    assert_eq!(check(&f, 11).await.violated, 1);
    assert_eq!(incidents(&f).await[0].name, "b.known");
    let later =
        "SELECT count(*) FROM sexton.job_monitors WHERE next_check_at = to_timestamp(1800000071)";
    assert_eq!(f.number(later).await, 1, "it is looked at again");
}
