//! Checks on a real PostgreSQL, with the clock stepped; no time passes.

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use sexton_model::check::PingKind;
use sexton_operations::pings::key_hash;
use sexton_scheduler::alerts::check_monitors::CheckMonitors;
use sexton_scheduler::alerts::monitor_round::MonitorReport;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::maintenance::ping_trimmer::PingTrimmer;
use sexton_server::pings::recorder::Recorder;
use sexton_store::checks::define::{CheckAction, act, apply};
use sexton_store::checks::judging::{CheckRound, take_wakeups};
use sexton_store::checks::record::{Creation, NewPing, PingTarget, create, record};
use sexton_store::checks::trim::Trimmed;
use sexton_store::checks::{endpoint, keys};
use sexton_store::incidents::{IncidentFilter, list};
use sexton_store::operator::AuditContext;
use sexton_tests::database::TestDatabase;
use sqlx::AssertSqlSafe;

const BY: AuditContext<'static> = AuditContext { actor: "ann", reason: Some("because") };

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

struct Fixture {
    db: TestDatabase,
}

impl Fixture {
    /// With these checks, since second 0, when pings begin to be accepted.
    async fn new(checks: &str) -> Self {
        let f = Self { db: TestDatabase::create().await.unwrap() };
        endpoint::beat(f.db.store(), Some(at(0))).await.unwrap();
        f.apply(checks, 0).await;
        f
    }

    async fn apply(&self, checks: &str, seconds: i64) {
        let specs = sexton_model::checks_file::parse("checks.toml", checks).unwrap();
        apply(self.db.store(), &specs, false, BY, Some(at(seconds))).await.unwrap();
    }

    async fn ping(&self, kind: PingKind, seconds: i64) {
        let id = self.number("SELECT id FROM sexton.checks ORDER BY name LIMIT 1").await;
        let ping = NewPing {
            target: PingTarget::Id(id),
            kind,
            exit_code: None,
            rid: None,
            body: Some("disk full".into()),
            agent: None,
        };
        let recorded = record(self.db.store(), &[ping], Some(at(seconds))).await.unwrap();
        assert_eq!(recorded.len(), 1);
    }

    async fn number<T>(&self, query: &str) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(self.db.pool()).await.unwrap()
    }

    /// A round at an instant, at which pings are accepted.
    async fn judge(&self, seconds: i64) -> MonitorReport {
        endpoint::beat(self.db.store(), Some(at(seconds))).await.unwrap();
        // The pauses between the steps are no pauses of the endpoint.
        let up = "UPDATE sexton.ping_endpoint SET up_since = to_timestamp(1800000000), paused_from = NULL";
        sqlx::raw_sql(up).execute(self.db.pool()).await.unwrap();
        self.round(seconds).await
    }

    async fn round(&self, seconds: i64) -> MonitorReport {
        CheckMonitors::new(self.db.store().clone()).run_once(Some(at(seconds))).await.unwrap()
    }

    async fn trim(&self, seconds: i64) -> Trimmed {
        PingTrimmer::new(self.db.store().clone()).run_once(Some(at(seconds))).await.unwrap()
    }

    /// `cause state occurrences` of each incident, the newest first.
    async fn incidents(&self) -> Vec<String> {
        let all = IncidentFilter { with_resolved: true, ..IncidentFilter::default() };
        let all = list(self.db.store(), &all, 100).await.unwrap();
        all.into_iter()
            .map(|one| format!("{} {} {}", one.cause, one.state, one.occurrences))
            .collect()
    }
}

const HOURLY: &str =
    "[[check]]\nname = \"backup\"\nevery = \"1h\"\ngrace = \"10m\"\nseverity = \"high\"\n";

#[tokio::test]
async fn a_missing_ping_opens_an_incident_at_its_deadline_and_the_next_success_ends_it() {
    let f = Fixture::new(HOURLY).await;
    f.ping(PingKind::Success, 10).await;
    let report = f.judge(20).await;
    assert_eq!((report.judged, report.violated), (1, 0));
    assert_eq!(report.next.unwrap().as_secs(), 3_600 + 600 - 10);
    assert_eq!(f.judge(4_209).await.judged, 0, "not due");
    assert_eq!(f.judge(4_211).await.violated, 1);
    assert_eq!(f.incidents().await, ["missed open 1"]);
    // The success wakes the check.
    f.ping(PingKind::Success, 5_000).await;
    assert_eq!(f.judge(5_000).await.recovered, 1);
    assert_eq!(f.incidents().await, ["missed resolved 1"]);
}

#[tokio::test]
async fn a_reported_failure_is_found_in_the_next_round_by_one_of_two_schedulers() {
    let f = Fixture::new(HOURLY).await;
    assert_eq!(f.judge(0).await.judged, 1);
    f.ping(PingKind::Fail, 10).await;
    let (one, two) = tokio::join!(f.judge(11), f.judge(11));
    assert_eq!(one.violated + two.violated, 1, "{one:?} {two:?}");
    assert_eq!(f.incidents().await, ["failed open 1"]);
    let detail: String = f.number("SELECT detail FROM sexton.incidents").await;
    assert!(detail.ends_with("disk full"), "{detail}");
}

#[tokio::test]
async fn a_ping_whose_client_does_not_wait_is_recorded() {
    let f = Fixture::new(HOURLY).await;
    let id = f.number("SELECT id FROM sexton.checks").await;
    let (recorder, written) = Recorder::start(f.db.store());
    let ping = NewPing {
        target: PingTarget::Id(id),
        kind: PingKind::Success,
        exit_code: None,
        rid: None,
        body: None,
        agent: None,
    };
    // It is accepted, and its client goes before a writer has had its turn.
    for _ in 0..3 {
        assert!(recorder.record(ping.clone()).now_or_never().is_none());
    }
    drop(recorder);
    written.await;
    assert_eq!(f.number::<i64>("SELECT count(*) FROM sexton.pings").await, 3);
}

#[tokio::test]
async fn a_ping_waits_for_no_check_that_is_being_judged() {
    let f = Fixture::new(HOURLY).await;
    let round = CheckRound::begin(f.db.store(), 10, Some(at(1))).await.unwrap().unwrap();
    assert_eq!(round.due.len(), 1);
    // A lock that it waited for would end this with an error after the statement's time limit.
    f.ping(PingKind::Fail, 2).await;
    round.finish(&[], &[], &[]).await.unwrap();
    // What came during a round is not lost, whether the round saw it or not.
    assert_eq!(f.judge(3).await.violated, 1);
}

#[tokio::test]
async fn the_wake_up_of_a_check_that_is_being_judged_waits_and_holds_up_no_other() {
    let f = Fixture::new(&format!("{HOURLY}{}", HOURLY.replace("backup", "report"))).await;
    let round = CheckRound::begin(f.db.store(), 1, Some(at(1))).await.unwrap().unwrap();
    let locked = round.due[0].row.id;
    let wake = "INSERT INTO sexton.check_wakeups (check_id) SELECT id FROM sexton.checks ORDER BY id = $1 DESC";
    sqlx::query(wake).bind(locked).execute(f.db.pool()).await.unwrap();
    let take = async || take_wakeups(f.db.store(), 10, Some(at(2))).await.unwrap();
    assert_eq!((take().await, take().await), (1, 0));
    let next = Some(at(7_200));
    let memory = round.due[0].memory.clone();
    round.finish(&[(locked, memory, next)], &[], &[]).await.unwrap();
    assert_eq!(take().await, 1);
    let due: i64 = f
        .number(
            "SELECT count(*) FROM sexton.checks WHERE next_check_at <= to_timestamp(1800000002)",
        )
        .await;
    assert_eq!(due, 2);
}

#[tokio::test]
async fn while_nobody_accepts_pings_none_is_missed_and_afterwards_only_what_the_pause_swallowed() {
    let f = Fixture::new(HOURLY).await;
    f.ping(PingKind::Success, 10).await;
    f.judge(130).await;
    let beat = async |seconds| endpoint::beat(f.db.store(), Some(at(seconds))).await.unwrap();
    // The endpoint's last sign is of second 130; the deadline is at 4,210.
    assert_eq!(f.round(9_000).await.violated, 0);
    beat(9_010).await;
    let pause = "SELECT ARRAY[extract(epoch FROM paused_from), extract(epoch FROM up_since)]::bigint[] FROM sexton.ping_endpoint";
    let paused = [1_800_000_130, 1_800_009_010];
    assert_eq!(f.number::<Vec<i64>>(pause).await, paused);
    // One that comes and goes is one pause, since not every check is looked at in between.
    beat(9_030).await;
    let paused = [1_800_000_130, 1_800_009_030];
    assert_eq!(f.number::<Vec<i64>>(pause).await, paused);
    // A shorter silence is no pause.
    for second in (9_039..=9_165).step_by(9) {
        beat(second).await;
    }
    assert_eq!(f.number::<Vec<i64>>(pause).await, paused);
    assert_eq!(f.round(9_165).await.violated, 0);
    // Within a period and the grace after the pause the next ping has to come, though there is a pause again.
    beat(13_000).await;
    assert_eq!((f.round(13_229).await.violated, f.incidents().await.len()), (0, 0));
    beat(13_231).await;
    assert_eq!(f.round(13_231).await.violated, 1);
    assert_eq!(f.incidents().await, ["missed open 1"]);
}

#[tokio::test]
async fn a_clock_that_was_put_back_does_not_make_the_endpoint_look_up() {
    let f = Fixture::new(HOURLY).await;
    let beat = async |seconds| endpoint::beat(f.db.store(), Some(at(seconds))).await.unwrap();
    let endpoint = "SELECT ARRAY[extract(epoch FROM up_since), extract(epoch FROM seen_at)]::bigint[] FROM sexton.ping_endpoint";
    for second in (0..=40_000).step_by(20_000) {
        beat(second).await;
    }
    assert_eq!(f.number::<Vec<i64>>(endpoint).await, [1_800_040_000, 1_800_040_000]);
    beat(1_000).await;
    assert_eq!(f.number::<Vec<i64>>(endpoint).await, [1_800_001_000, 1_800_001_000]);
}

#[tokio::test]
async fn a_start_makes_its_check_due_unless_it_is_looked_at_within_the_run() {
    let f = Fixture::new(HOURLY).await;
    f.ping(PingKind::Success, 0).await;
    f.judge(0).await;
    // The next look is at 4,200: a run that starts before 3,600 could end unseen.
    let wakeups = "SELECT count(*) FROM sexton.check_wakeups";
    f.ping(PingKind::Start, 3_700).await;
    assert_eq!(f.number::<i64>(wakeups).await, 0);
    f.ping(PingKind::Start, 3_000).await;
    assert_eq!(f.number::<i64>(wakeups).await, 1);
    f.judge(3_000).await;
    f.ping(PingKind::Start, 4_195).await;
    assert_eq!(f.number::<i64>(wakeups).await, 1, "it may be judged before this ping is visible");
}

#[tokio::test]
async fn a_deleted_check_ends_its_incident_and_is_removed_with_its_pings() {
    let f = Fixture::new(HOURLY).await;
    f.ping(PingKind::Fail, 10).await;
    assert_eq!(f.judge(11).await.violated, 1);
    assert!(act(f.db.store(), "backup", CheckAction::Delete, BY, Some(at(20))).await.unwrap());
    assert_eq!(f.judge(20).await.recovered, 1);
    // Its name is free at once.
    f.apply(HOURLY, 30).await;
    f.trim(20 + 299).await;
    assert_eq!(f.number::<i64>("SELECT count(*) FROM sexton.checks").await, 2);
    f.trim(20 + 300).await;
    assert_eq!(f.number::<i64>("SELECT count(*) FROM sexton.checks").await, 1);
    assert_eq!(f.number::<i64>("SELECT count(*) FROM sexton.pings").await, 0);
}

#[tokio::test]
async fn a_paused_check_expects_nothing_and_another_period_counts_from_its_change() {
    let f = Fixture::new(HOURLY).await;
    let act = async |action, seconds| {
        act(f.db.store(), "backup", action, BY, Some(at(seconds))).await.unwrap()
    };
    assert!(act(CheckAction::Pause, 10).await);
    assert!(!act(CheckAction::Pause, 11).await, "it is paused already");
    assert_eq!(f.judge(90_000).await.violated, 0);
    assert!(act(CheckAction::Resume, 90_000).await);
    assert_eq!(f.judge(94_199).await.violated, 0);
    f.apply(&HOURLY.replace("1h", "2h"), 94_199).await;
    assert_eq!(f.judge(94_200).await.violated, 0);
    assert_eq!(f.judge(94_199 + 7_800).await.violated, 1);
}

#[tokio::test]
async fn pings_create_no_more_checks_than_their_key_allows_however_many_come_at_once() {
    let f = Fixture::new("").await;
    let hash = key_hash("sxp_team");
    assert!(keys::create(f.db.store(), "team", &hash, 5, BY, None).await.unwrap());
    assert!(!keys::create(f.db.store(), "team", &hash, 5, BY, None).await.unwrap());
    let names: Vec<String> = (0..20).map(|number| format!("job-{number}")).collect();
    let creating = names.iter().map(|name| create(f.db.store(), &hash, name, None));
    let outcomes = futures_util::future::join_all(creating).await;
    let created = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Ok(Creation::Exists { created: true })))
        .count();
    assert_eq!((created, f.number::<i64>("SELECT count(*) FROM sexton.checks").await), (5, 5));
    let unknown = create(f.db.store(), &key_hash("another"), "job-30", None).await.unwrap();
    assert_eq!(unknown, Creation::UnknownKey);
    let existing: String = f.number("SELECT name FROM sexton.checks LIMIT 1").await;
    // Nothing but to create waits for the lock of the key.
    let mut tx = f.db.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.ping_keys FOR UPDATE").execute(&mut *tx).await.unwrap();
    let full = create(f.db.store(), &hash, "job-40", None).await.unwrap();
    assert_eq!(full, Creation::TooMany);
    let again = create(f.db.store(), &hash, &existing, None).await.unwrap();
    assert_eq!(again, Creation::Exists { created: false });
}

#[tokio::test]
async fn a_scheduler_that_dies_in_a_judgement_leaves_it_to_the_next() {
    let f = Fixture::new(HOURLY).await;
    f.ping(PingKind::Fail, 10).await;
    let round = CheckRound::begin(f.db.store(), 10, Some(at(11))).await.unwrap().unwrap();
    drop(round);
    assert_eq!(f.judge(12).await.violated, 1);
    assert_eq!(f.incidents().await, ["failed open 1"]);
}
