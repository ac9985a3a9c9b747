//! Terms of schedules, on the real tables: limits of runs, spread firings, excluded days, ends, and
//! instants that are past.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::{
    Exclusions, JobSpec, Misfire, MisfirePolicy, PastPolicy, Schedule, ScheduleConstraints,
};
use sexton_model::moment::Moment;
use sexton_model::plan::Timetable;
use sexton_model::zone::Zone;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::planner::cursors::Cursors;
use sexton_store::catch_up::{self, HoldDecision};
use sexton_store::gaps::Gap;
use sexton_store::jobs::{self, Apply, ApplyError, Job};
use sexton_store::ledger::{self, LedgerQuery};
use sexton_store::operator::AuditContext;
use uuid::Uuid;

use super::Fixture;

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

async fn try_apply(f: &Fixture, spec: &JobSpec, at: DateTime<Utc>) -> Result<(), ApplyError> {
    let specs = [spec.clone()];
    let request = Apply { specs: &specs, actor: "t", dry_run: false, prune: false };
    jobs::apply(f.db.store(), request, || JobId::new(Uuid::now_v7()), Some(at)).await.map(|_| ())
}

async fn apply(f: &Fixture, spec: &JobSpec, at: &str) {
    try_apply(f, spec, instant(at)).await.unwrap();
}

async fn job(f: &Fixture) -> Job {
    jobs::find(f.db.store(), "a.b").await.unwrap().unwrap()
}

async fn keys(f: &Fixture) -> Vec<String> {
    sqlx::query_scalar("SELECT execution_key FROM sexton.executions ORDER BY scheduled_for")
        .fetch_all(f.db.pool())
        .await
        .unwrap()
}

/// Reason, first, last and count of each gap, oldest first.
async fn gaps(f: &Fixture) -> Vec<(String, String, String, i32)> {
    let job = job(f).await.id;
    let mut gaps: Vec<Gap> = sexton_store::gaps::list_by_job(f.db.store(), job, 100).await.unwrap();
    gaps.reverse();
    let written = |at: DateTime<Utc>| at.format("%m-%d %H:%M:%S").to_string();
    gaps.into_iter()
        .map(|gap| (gap.reason, written(gap.first_firing), written(gap.last_firing), gap.count))
        .collect()
}

fn spec(schedule: Schedule, constraints: ScheduleConstraints) -> JobSpec {
    JobSpec { constraints, ..JobSpec::new("a.b", "work", schedule) }
}

fn cron(expression: &str) -> Schedule {
    Schedule::Cron { expression: expression.to_owned() }
}

fn seconds(period: u64) -> Schedule {
    Schedule::every(Duration::from_secs(period))
}

fn runs(max_runs: u32) -> ScheduleConstraints {
    ScheduleConstraints { max_runs: Some(max_runs), ..ScheduleConstraints::default() }
}

#[tokio::test]
async fn two_replicas_run_exactly_max_runs_firings() {
    let f = Fixture::without_broker().await;
    apply(&f, &spec(seconds(10), runs(5)), "2026-01-01T00:00:00Z").await;
    let (one, _keep_one) = f.planner();
    let (two, _keep_two) = f.planner();
    for step in 0..12 {
        // Six are due at the third step at once, of which four may run.
        let late = if step == 2 { 50 } else { 0 };
        let now = Some(instant("2026-01-01T00:00:01Z") + TimeDelta::seconds(10 * step + late));
        let (a, b) = tokio::join!(one.run_once(now), two.run_once(now));
        a.unwrap();
        b.unwrap();
    }
    let claimed: Vec<_> = (1..=5).map(|n| format!("every-2026-01-01T00:00:{n}0Z")).collect();
    assert_eq!(keys(&f).await, claimed);
    let ended = job(&f).await;
    assert_eq!((ended.runs_used, ended.next_fire_at, ended.next_nominal_at), (5, None, None));
    // What was due when the limit was reached is not forgotten.
    let past_end = ("past_end".to_owned(), "01-01 00:01:00".into(), "01-01 00:01:10".into(), 2);
    assert_eq!(gaps(&f).await, [past_end]);
    // A larger limit goes on from now, a smaller one does not.
    apply(&f, &spec(seconds(10), runs(7)), "2026-01-01T01:00:00Z").await;
    let now = Some(instant("2026-01-01T01:00:35Z"));
    one.run_once(now).await.unwrap();
    assert_eq!((keys(&f).await.len(), job(&f).await.next_fire_at), (7, None));
    apply(&f, &spec(seconds(10), runs(2)), "2026-01-01T02:00:00Z").await;
    assert_eq!(job(&f).await.next_fire_at, None);
    // Without a limit nothing is counted, and with a new one counting begins anew.
    apply(&f, &spec(seconds(10), ScheduleConstraints::default()), "2026-01-01T03:00:00Z").await;
    apply(&f, &spec(seconds(10), runs(1)), "2026-01-01T03:00:05Z").await;
    one.run_once(Some(instant("2026-01-01T03:00:10Z"))).await.unwrap();
    assert_eq!((keys(&f).await.len(), job(&f).await.runs_used), (8, 1));
}

#[tokio::test]
async fn released_firings_count_towards_max_runs() {
    let f = Fixture::without_broker().await;
    let misfire = Misfire { policy: MisfirePolicy::FireAll, ..Misfire::default() };
    let hourly = JobSpec { misfire, ..spec(seconds(3_600), runs(3)) };
    apply(&f, &hourly, "2026-01-01T00:00:00Z").await;
    let planner = f.holding();
    planner.run_once(Some(instant("2026-01-01T00:00:01Z"))).await.unwrap();
    // Hours without a look at the clock: what is late is set aside.
    let jumped = planner.run_once(Some(instant("2026-01-01T20:30:00Z"))).await.unwrap();
    assert_eq!((jumped.claimed, jumped.held, job(&f).await.runs_used), (0, 20, 0));
    let by = AuditContext { actor: "t", reason: None };
    let fresh_id = || ExecutionId::new(Uuid::now_v7());
    let now = Some(instant("2026-01-01T20:40:00Z"));
    catch_up::settle(f.db.store(), (HoldDecision::Release, None), (by, "t:1"), fresh_id, now)
        .await
        .unwrap();
    let claimed: Vec<_> = (1..=3).map(|hour| format!("every-2026-01-01T0{hour}:00:00Z")).collect();
    assert_eq!(keys(&f).await, claimed);
    let past_end = ("past_end".to_owned(), "01-01 04:00:00".into(), "01-01 20:00:00".into(), 17);
    assert_eq!(gaps(&f).await, [past_end]);
    assert_eq!((job(&f).await.runs_used, job(&f).await.next_fire_at), (3, None));
}

/// What is due when the release uses up the last run is the planner's, which comes to it later.
#[tokio::test]
async fn a_release_of_the_last_run_records_the_firings_still_due() {
    let f = Fixture::without_broker().await;
    let misfire = Misfire { policy: MisfirePolicy::FireAll, ..Misfire::default() };
    let jitter = Some(Duration::from_mins(10));
    let hourly =
        JobSpec { misfire, ..spec(seconds(3_600), ScheduleConstraints { jitter, ..runs(3) }) };
    apply(&f, &hourly, "2026-01-01T00:00:00Z").await;
    let planner = f.holding();
    planner.run_once(Some(instant("2026-01-01T00:00:01Z"))).await.unwrap();
    planner.run_once(Some(instant("2026-01-01T05:30:00Z"))).await.unwrap();
    let by = AuditContext { actor: "t", reason: None };
    let fresh_id = || ExecutionId::new(Uuid::now_v7());
    let now = Some(instant("2026-01-01T07:30:00Z"));
    let decided =
        catch_up::settle(f.db.store(), (HoldDecision::Release, None), (by, "t:1"), fresh_id, now);
    assert_eq!(decided.await.unwrap().claimed, 3);
    let left = job(&f).await;
    assert_eq!((left.runs_used, left.next_nominal_at), (3, Some(instant("2026-01-01T06:00:00Z"))));
    let last = planner.run_once(now).await.unwrap();
    assert_eq!((last.claimed, last.missed, job(&f).await.next_fire_at), (0, 2, None));
    let past_end = |first: &str, last: &str| {
        ("past_end".to_owned(), format!("01-01 {first}:00:00"), format!("01-01 {last}:00:00"), 2)
    };
    assert_eq!(gaps(&f).await, [past_end("04", "05"), past_end("06", "07")]);
}

#[tokio::test]
async fn a_revision_without_terms_is_read_without_the_current_terms() {
    let f = Fixture::without_broker().await;
    apply(&f, &spec(seconds(3_600), ScheduleConstraints::default()), "2026-01-01T00:00:00Z").await;
    let start = Some(Moment::parse("2026-01-03T00:00:00").unwrap());
    let exclude = Exclusions::from_texts(&["2026-01-01"]).unwrap();
    let constraints =
        ScheduleConstraints { start, exclude, jitter: Some(Duration::from_secs(5)), ..runs(1) };
    apply(&f, &spec(seconds(3_600), constraints), "2026-01-01T05:30:00Z").await;
    let done = sqlx::query(
        "UPDATE sexton.job_revisions SET definition =
             definition - ARRAY['start_at', 'end_at', 'exclude', 'jitter_ms', 'max_runs']
         WHERE revision = 1 AND definition ? 'exclude'",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    assert_eq!(done.rows_affected(), 1);
    let wanted = LedgerQuery {
        job: job(&f).await.id,
        from: instant("2026-01-01T00:00:00Z"),
        to: instant("2026-01-03T01:30:00Z"),
        max_firings: 100,
    };
    let page = ledger::read_page(f.db.store(), wanted, None).await.unwrap().unwrap();
    let hours = page.stretch.firings.iter().map(|it| it.at.format("%d %H").to_string());
    assert_eq!(
        hours.collect::<Vec<_>>(),
        ["01 01", "01 02", "01 03", "01 04", "01 05", "03 00", "03 01"]
    );
}

#[tokio::test]
async fn a_firing_claimed_before_uses_up_no_run() {
    let f = Fixture::without_broker().await;
    apply(&f, &spec(seconds(10), runs(2)), "2026-01-01T00:00:00Z").await;
    let (planner, _dispatcher) = f.planner();
    planner.run_once(Some(instant("2026-01-01T00:00:10Z"))).await.unwrap();
    sqlx::query("UPDATE sexton.jobs SET next_fire_at = next_fire_at - interval '10 seconds'")
        .execute(f.db.pool())
        .await
        .unwrap();
    let again = planner.run_once(Some(instant("2026-01-01T00:00:11Z"))).await.unwrap();
    assert_eq!((again.known, again.claimed), (1, 0));
    planner.run_once(Some(instant("2026-01-01T00:00:20Z"))).await.unwrap();
    assert_eq!((keys(&f).await.len(), job(&f).await.runs_used), (2, 2));
}

#[tokio::test]
async fn a_spread_firing_is_not_claimed_before_its_time_and_keeps_its_nominal_one() {
    let f = Fixture::without_broker().await;
    let jitter = Some(Duration::from_hours(1));
    let daily =
        spec(cron("0 8 * * *"), ScheduleConstraints { jitter, ..ScheduleConstraints::default() });
    apply(&f, &daily, "2026-01-01T00:00:00Z").await;
    let nominal = instant("2026-01-01T08:00:00Z");
    let due = Timetable::of(&daily).unwrap().due(nominal);
    assert!(due > nominal + TimeDelta::minutes(1), "{due}");
    let row = job(&f).await;
    assert_eq!((row.next_fire_at, row.next_nominal_at), (Some(due), Some(nominal)));
    let (planner, _dispatcher) = f.planner();
    let early = planner.run_once(Some(due - TimeDelta::milliseconds(1))).await.unwrap();
    assert_eq!((early.claimed, keys(&f).await.len()), (0, 0));
    planner.run_once(Some(due)).await.unwrap();
    assert_eq!(keys(&f).await, ["cron-2026-01-01T08:00:00Z"]);
    let row: (DateTime<Utc>, DateTime<Utc>) =
        sqlx::query_as("SELECT scheduled_for, next_attempt_at FROM sexton.executions")
            .fetch_one(f.db.pool())
            .await
            .unwrap();
    assert_eq!(row, (nominal, due));
    let row = job(&f).await;
    assert_eq!(row.planned_until, Some(due));
    let tomorrow = instant("2026-01-02T08:00:00Z");
    let due = Timetable::of(&daily).unwrap().due(tomorrow);
    assert_eq!((row.next_fire_at, row.next_nominal_at), (Some(due), Some(tomorrow)));
    // Another jitter spreads the same firing otherwise; none lets it fire at its time.
    apply(&f, &spec(cron("0 8 * * *"), ScheduleConstraints::default()), "2026-01-01T12:00:00Z")
        .await;
    let row = job(&f).await;
    assert_eq!((row.next_fire_at, row.next_nominal_at), (Some(tomorrow), None));
    assert_eq!(gaps(&f).await, []);
}

#[tokio::test]
async fn a_cursor_moved_without_jitter_is_a_firing_as_it_stands() {
    let f = Fixture::without_broker().await;
    let jitter = Some(Duration::from_mins(5));
    apply(
        &f,
        &spec(cron("0 8 * * *"), ScheduleConstraints { jitter, ..ScheduleConstraints::default() }),
        "2026-01-01T00:00:00Z",
    )
    .await;
    sqlx::query("UPDATE sexton.jobs SET next_fire_at = '2026-01-02T08:00:00Z'")
        .execute(f.db.pool())
        .await
        .unwrap();
    let (planner, _dispatcher) = f.planner();
    planner.run_once(Some(instant("2026-01-02T08:05:00Z"))).await.unwrap();
    assert_eq!(keys(&f).await, ["cron-2026-01-02T08:00:00Z"]);
}

#[tokio::test]
async fn excluded_days_become_a_gap_and_a_job_may_end_within_them() {
    let f = Fixture::without_broker().await;
    let exclude = Exclusions::from_texts(&["2026-12-24..2026-12-26", "2026-12-29"]).unwrap();
    let end = Some(Moment::parse("2026-12-29T12:00:00").unwrap());
    let timezone = Zone::parse("Europe/Vienna").unwrap();
    let constraints = ScheduleConstraints { exclude, end, ..ScheduleConstraints::default() };
    let daily = JobSpec { timezone, ..spec(cron("0 8 * * *"), constraints) };
    apply(&f, &daily, "2026-12-22T20:00:00Z").await;
    let (planner, _dispatcher) = f.planner();
    for hour in 0..200 {
        let now = instant("2026-12-22T20:30:00Z") + TimeDelta::hours(hour);
        planner.run_once(Some(now)).await.unwrap();
    }
    let claimed = ["23", "27", "28"].map(|day| format!("cron-2026-12-{day}T07:00:00Z"));
    assert_eq!(keys(&f).await, claimed);
    let excluded = |first: &str, last: &str, count| {
        ("excluded".to_owned(), format!("{first} 07:00:00"), format!("{last} 07:00:00"), count)
    };
    assert_eq!(gaps(&f).await, [excluded("12-24", "12-26", 3), excluded("12-29", "12-29", 1)]);
    assert_eq!(job(&f).await.next_fire_at, None);
}

#[tokio::test]
async fn a_year_of_excluded_seconds_is_one_row() {
    let f = Fixture::without_broker().await;
    let exclude = Exclusions::from_texts(&["2026-01-01..2026-12-31"]).unwrap();
    let constraints = ScheduleConstraints { exclude, ..ScheduleConstraints::default() };
    apply(&f, &spec(seconds(1), constraints), "2026-01-01T00:00:00Z").await;
    assert_eq!(job(&f).await.next_fire_at, Some(instant("2027-01-01T00:00:00Z")));
    let (planner, _dispatcher) = f.planner();
    let looked = planner.run_once(Some(instant("2027-01-01T00:00:00Z"))).await.unwrap();
    assert_eq!((looked.claimed, looked.missed), (1, 365 * 86_400 - 1));
    assert_eq!(gaps(&f).await.len(), 1);
}

#[tokio::test]
async fn exclusions_during_a_pause_or_before_a_new_schedule_are_recorded_once() {
    let f = Fixture::without_broker().await;
    let exclude = Exclusions::from_texts(&["2026-01-02"]).unwrap();
    let constraints = ScheduleConstraints { exclude, ..ScheduleConstraints::default() };
    let hourly = spec(cron("0 */12 * * *"), constraints.clone());
    apply(&f, &hourly, "2026-01-01T00:00:00Z").await;
    let by = AuditContext { actor: "t", reason: Some("holiday") };
    jobs::pause(f.db.store(), "a.b", by, Some(instant("2026-01-01T06:00:00Z"))).await.unwrap();
    jobs::resume(f.db.store(), "a.b", by, Some(instant("2026-01-02T06:00:00Z"))).await.unwrap();
    apply(&f, &spec(cron("0 6 * * *"), constraints), "2026-01-02T18:00:00Z").await;
    let gap = |reason: &str, at: &str| (reason.to_owned(), at.to_owned(), at.to_owned(), 1);
    assert_eq!(
        gaps(&f).await,
        [
            gap("paused", "01-01 12:00:00"),
            gap("excluded", "01-02 00:00:00"),
            gap("excluded", "01-02 12:00:00"),
        ]
    );
    assert_eq!(job(&f).await.next_fire_at, Some(instant("2026-01-03T06:00:00Z")));
}

#[tokio::test]
async fn a_past_instant_is_refused_or_runs_at_once_when_allowed() {
    let f = Fixture::without_broker().await;
    let at = Moment::parse("2026-01-01T09:00:00").unwrap();
    let timezone = Zone::parse("Europe/Vienna").unwrap();
    let once = JobSpec { timezone, ..spec(Schedule::At { at }, ScheduleConstraints::default()) };
    // By the database's clock it is past by three months, far outside the window of a day.
    let refused = try_apply(&f, &once, instant("2026-04-01T00:00:00Z")).await.unwrap_err();
    let ApplyError::Problems(problems) = refused else { panic!("{refused}") };
    assert!(problems[0].message.contains("past = \"run\""), "{}", problems[0]);
    let runs_past = JobSpec { past: PastPolicy::Run, ..once.clone() };
    apply(&f, &runs_past, "2026-04-01T00:00:00Z").await;
    let (planner, _dispatcher) = f.planner();
    planner.run_once(Some(instant("2026-04-01T00:00:01Z"))).await.unwrap();
    assert_eq!(keys(&f).await, ["once-2026-01-01T08:00:00Z"]);
    assert_eq!(job(&f).await.next_fire_at, None);
    // Applying the same definition again changes nothing, whatever `past` says.
    apply(&f, &runs_past, "2026-05-01T00:00:00Z").await;
    apply(&f, &once, "2026-05-01T00:00:00Z").await;
    planner.run_once(Some(instant("2026-05-01T00:00:01Z"))).await.unwrap();
    assert_eq!(keys(&f).await.len(), 1);
    assert_eq!(gaps(&f).await, []);
}

#[tokio::test]
async fn new_time_zone_data_moves_a_local_instant() {
    let f = Fixture::without_broker().await;
    let at = Moment::parse("2026-07-01T09:00:00").unwrap();
    let timezone = Zone::parse("Europe/Vienna").unwrap();
    let once = JobSpec { timezone, ..spec(Schedule::At { at }, ScheduleConstraints::default()) };
    apply(&f, &once, "2026-01-01T00:00:00Z").await;
    // As if older data had known no summer time.
    sqlx::query(
        "UPDATE sexton.jobs SET tz_version = '2000a', next_fire_at = '2026-07-01T08:00:00Z'",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    let looked = Cursors::new(f.db.store().clone()).run_once(None).await.unwrap();
    assert_eq!(looked.moved.len(), 1);
    assert_eq!(job(&f).await.next_fire_at, Some(instant("2026-07-01T07:00:00Z")));
}

#[tokio::test]
async fn a_job_follows_its_phase_and_start() {
    let f = Fixture::without_broker().await;
    let start = Some(Moment::parse("2026-01-01T00:30:00").unwrap());
    let [period, phase] = [15, 5].map(Duration::from_mins);
    let job_of = spec(
        Schedule::Every { period, phase },
        ScheduleConstraints { start, ..ScheduleConstraints::default() },
    );
    apply(&f, &JobSpec { timezone: Zone::UTC, ..job_of }, "2026-01-01T00:00:00Z").await;
    let (planner, _dispatcher) = f.planner();
    for minute in 0..60 {
        let now = instant("2026-01-01T00:00:00Z") + TimeDelta::minutes(minute);
        planner.run_once(Some(now)).await.unwrap();
    }
    assert_eq!(keys(&f).await, ["35", "50"].map(|at| format!("every-2026-01-01T00:{at}:00Z")));
}
