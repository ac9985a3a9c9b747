//! The database's time jumps: late firings are set aside until an operator decides, however many
//! schedulers look and wherever one dies; what is on time goes on.

use std::sync::Arc;
use std::time::Duration;

use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::{JobSpec, Misfire, MisfirePolicy, PastPolicy, Schedule};
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::planner::Planner;
use sexton_scheduler::publish::dispatch::dispatch;
use sexton_store::catch_up::{self, HoldDecision, SettledHold};
use sexton_store::firing::{self, ClaimTransaction};
use sexton_store::jobs::{self, Apply, Delete};
use sexton_store::operator::AuditContext;
use sexton_tests::factory::NewJob;
use tokio::sync::Barrier;
use uuid::Uuid;

use super::absences::expected;
use super::{Fixture, at, now};

const HOUR: i64 = 3_600;
const HOLD_THRESHOLD: Duration = Duration::from_hours(2);
const POLICIES: [&str; 3] = ["skip", "fire_once", "fire_all"];

impl Fixture {
    /// A planner that holds catch-up after [`HOLD_THRESHOLD`].
    pub(super) fn holding(&self) -> Planner {
        let (dispatch, _) = dispatch(Arc::clone(&self.outbox));
        Planner::new(self.store(), dispatch, "test:1").hold_after(HOLD_THRESHOLD)
    }

    /// An hourly job of each policy, whose hour 0 has been claimed.
    async fn hourly(&self, planner: &Planner) -> Vec<(&'static str, JobId)> {
        let mut jobs = Vec::new();
        for policy in POLICIES {
            let job = NewJob { misfire: policy, ..NewJob::new(policy).cron("0 * * * *", at(0)) };
            jobs.push((policy, self.job(job).await));
        }
        assert_eq!(planner.run_once(now(0)).await.unwrap().claimed, 3);
        jobs
    }

    async fn settle(
        &self,
        verdict: HoldDecision,
        names: Option<&[String]>,
        second: i64,
    ) -> SettledHold {
        let by = AuditContext { actor: "me", reason: Some("looked at it") };
        let fresh_id = || ExecutionId::new(Uuid::now_v7());
        let done = catch_up::settle(
            self.db.store(),
            (verdict, names),
            (by, "test:2"),
            fresh_id,
            now(second),
        );
        done.await.unwrap()
    }

    async fn apply(&self, specs: &[JobSpec], second: i64) {
        let apply = Apply { specs, actor: "me", dry_run: false, prune: false };
        let fresh_id = || JobId::new(Uuid::now_v7());
        jobs::apply(self.db.store(), apply, fresh_id, now(second)).await.unwrap();
    }

    async fn holds(&self) -> i64 {
        self.number("SELECT count(*) FROM sexton.holds WHERE released_at IS NULL").await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_schedulers_after_a_jump_forward_begin_one_hold_and_claim_only_what_is_on_time() {
    let f = Fixture::without_broker().await;
    let jobs = f.hourly(&f.holding()).await;
    let jump = 10 * HOUR + 30;
    let barrier = Barrier::new(2);
    let run = async || {
        let (dispatch, _) = dispatch(Arc::clone(&f.outbox));
        let other = f.db.other_store().unwrap();
        let planner = Planner::new(other, dispatch, "test:9").hold_after(HOLD_THRESHOLD);
        barrier.wait().await;
        planner.run_once(now(jump)).await.unwrap()
    };
    let (one, two) = tokio::join!(run(), run());
    assert_eq!((one.claimed + two.claimed, one.held + two.held), (3, 27));
    assert_eq!(f.number("SELECT count(*) FROM sexton.holds").await, 1);
    // What is on time goes on; what comes late while it is held is set aside as well.
    let planner = f.holding();
    assert_eq!(planner.run_once(now(11 * HOUR)).await.unwrap().claimed, 3);
    let later = planner.run_once(now(12 * HOUR + 600)).await.unwrap();
    assert_eq!((later.claimed, later.held), (0, 3));
    assert_eq!(f.number("SELECT count(*) FROM sexton.executions").await, 9);

    // Two days later somebody decides: as of the jump, not of then.
    let settled = f.settle(HoldDecision::Release, None, 60 * HOUR).await;
    assert!(settled.ended, "{settled:?}");
    assert_eq!((f.holds().await, settled.jobs), (0, 3));
    for (policy, job) in jobs {
        let mut wanted = expected(policy, jump);
        wanted.insert(11, "run".to_owned());
        let late = if policy == "skip" { "misfire_skip" } else { "run" };
        wanted.insert(12, late.to_owned());
        assert_eq!(f.by_the_hour(job).await, wanted, "{policy}");
    }
    let actions =
        "SELECT count(*) FROM sexton.operator_actions WHERE actor = 'me' AND reason = 'looked at it'
                 AND action IN ('release_catch_up', 'end_hold')";
    assert_eq!(f.number(actions).await, 4);
    // It is over: what is late is caught up again.
    let after = planner.run_once(now(12 * HOUR + 600 + 2 * HOUR)).await.unwrap();
    assert_eq!((after.held, after.claimed), (0, 3));
}

#[tokio::test]
async fn after_a_jump_back_nothing_fires_twice_and_catch_up_is_held() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    let jobs = f.hourly(&planner).await;
    let back = planner.run_once(now(-5 * HOUR)).await.unwrap();
    assert_eq!((back.claimed, back.held), (0, 0));
    let hold = catch_up::find_hold(f.db.store()).await.unwrap().unwrap();
    assert_eq!(
        (hold.reason.as_str(), hold.last_seen, hold.noticed_at),
        ("backward", at(0), at(-5 * HOUR))
    );
    // The clock is mended: another jump, one hold.
    let mended = planner.run_once(now(3 * HOUR + 5)).await.unwrap();
    assert_eq!((mended.claimed, mended.held), (3, 6));
    assert_eq!(f.number("SELECT count(*) FROM sexton.holds").await, 1);
    let settled = f.settle(HoldDecision::Discard, None, 4 * HOUR).await;
    assert_eq!((settled.claimed, settled.missed, settled.ended), (0, 6, true));
    for (policy, job) in jobs {
        let ledger = f.by_the_hour(job).await;
        let became: Vec<_> = ledger.values().map(String::as_str).collect();
        assert_eq!(became, ["run", "held", "held", "run"], "{policy}");
    }
    assert_eq!(f.settle(HoldDecision::Discard, None, 4 * HOUR).await.missed, 0, "once");
}

#[tokio::test]
async fn an_absence_up_to_the_limit_is_caught_up_automatically() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    let jobs = f.hourly(&planner).await;
    planner.run_once(now(2 * HOUR)).await.unwrap();
    assert_eq!(f.number("SELECT count(*) FROM sexton.holds").await, 0);
    for (policy, job) in jobs {
        assert_eq!(f.by_the_hour(job).await, expected(policy, 2 * HOUR), "{policy}");
    }
    // A planner that reads the clock every few seconds sees no jump, and does not write each time.
    for second in [1, 6, 7, 12] {
        planner.run_once(now(2 * HOUR + second)).await.unwrap();
    }
    let seen = "SELECT extract(epoch FROM seen_at)::bigint - 1800000000 FROM sexton.planner_clock";
    assert_eq!(f.number(seen).await, 2 * HOUR + 12);
}

/// A scheduler dies after its look at the clock: with its transaction the hold is gone, and the next
/// one notices; or the hold is committed and nothing else, and the next one keeps to it.
#[tokio::test]
async fn a_scheduler_that_dies_after_noticing_a_jump_lets_nothing_late_run() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    f.hourly(&planner).await;
    let look = async || {
        let store = f.db.store();
        let mut transaction = ClaimTransaction::begin(store, now(10 * HOUR)).await.unwrap();
        let look = transaction.read_clock(Some(HOLD_THRESHOLD), "doomed:1").await.unwrap();
        assert!(look.held && look.noticed.is_some(), "{look:?}");
        transaction
    };
    look().await.rollback().await.unwrap();
    assert_eq!(f.holds().await, 0);
    look().await.commit().await.unwrap();
    assert_eq!(f.holds().await, 1);
    let due = "SELECT count(*) FROM sexton.jobs WHERE next_fire_at = to_timestamp(1800003600)";
    assert_eq!(f.number(due).await, 3, "the cursors stand where they stood");
    // A scheduler that itself would notice nothing keeps to the hold, too.
    let (careless, _dispatcher) = f.planner();
    let done = careless.run_once(now(10 * HOUR)).await.unwrap();
    assert_eq!((done.claimed, done.held), (3, 27));
}

#[tokio::test]
async fn a_decision_about_one_job_leaves_the_others_and_the_hold() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    f.hourly(&planner).await;
    planner.run_once(now(5 * HOUR + 600)).await.unwrap();
    let one = ["fire_all".to_owned()];
    let settled = f.settle(HoldDecision::Release, Some(&one), 6 * HOUR).await;
    assert_eq!((settled.jobs, settled.claimed, settled.ended), (1, 5, false));
    assert_eq!(
        (f.holds().await, f.number("SELECT count(*) FROM sexton.held_firings").await),
        (1, 2)
    );
    let again = f.settle(HoldDecision::Release, Some(&one), 6 * HOUR).await;
    assert_eq!((again.jobs, again.claimed), (0, 0), "a decision is made once");
}

#[tokio::test]
async fn held_firings_of_a_paused_or_rescheduled_job_become_a_gap() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    let jobs = f.hourly(&planner).await;
    planner.run_once(now(5 * HOUR + 600)).await.unwrap();
    let by = AuditContext { actor: "me", reason: Some("seen enough") };
    jobs::pause(f.db.store(), "skip", by, now(5 * HOUR + 700)).await.unwrap();
    let schedule = Schedule::Cron { expression: "30 * * * *".into() };
    let specs = [JobSpec::new("fire_all", "work", schedule)];
    f.apply(&specs, 5 * HOUR + 800).await;
    assert!(f.settle(HoldDecision::Release, None, 6 * HOUR).await.ended);
    let reasons = ["paused", "run", "rescheduled"];
    for ((policy, job), newest) in jobs.into_iter().zip(reasons) {
        let ledger = f.by_the_hour(job).await;
        let oldest = if newest == "run" { "coalesced" } else { newest };
        let became: Vec<_> = ledger.values().map(String::as_str).collect();
        assert_eq!(became, ["run", oldest, oldest, oldest, oldest, newest], "{policy}");
    }
    assert_eq!(firing::list_held_runs(f.db.store(), None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn held_firings_of_a_deleted_job_become_a_gap() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    let jobs = f.hourly(&planner).await;
    planner.run_once(now(3 * HOUR + 600)).await.unwrap();
    let request = Delete { name: "fire_all", cancel: true, dry_run: false, revision: None };
    let by = AuditContext { actor: "me", reason: Some("not needed any more") };
    jobs::delete(f.db.store(), request, by, now(4 * HOUR)).await.unwrap();
    let settled = f.settle(HoldDecision::Release, None, 5 * HOUR).await;
    assert_eq!((settled.jobs, settled.ended), (2, true), "{settled:?}");
    let (_, deleted) = jobs[2];
    let ledger = f.by_the_hour(deleted).await;
    let became: Vec<_> = ledger.values().map(String::as_str).collect();
    assert_eq!(became, ["run", "deleted", "deleted", "deleted", "deleted"]);
    let behind = "SELECT count(*) FROM sexton.gaps WHERE reason = 'deleted' AND actor = 'me'
                  AND why = 'not needed any more'";
    assert_eq!(f.number(behind).await, 2, "what was set aside, and what was due at the deletion");
}

/// Many firings at once are what the overlap policies are for.
#[tokio::test]
async fn released_firings_follow_the_overlap_policy_of_their_job() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    let mut jobs = Vec::new();
    for overlap in ["allow", "skip", "queue", "replace"] {
        let job = NewJob { misfire: "fire_all", overlap, ..NewJob::new(overlap) };
        jobs.push(f.job(job.cron("0 * * * *", at(0))).await);
    }
    planner.run_once(now(0)).await.unwrap();
    sqlx::query(
        "UPDATE sexton.executions SET state = 'succeeded', finished_at = now(), next_attempt_at = NULL",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    assert_eq!(planner.run_once(now(5 * HOUR + 600)).await.unwrap().held, 20);
    let settled = f.settle(HoldDecision::Release, None, 6 * HOUR).await;
    assert!(settled.ended, "{settled:?}");
    let (run, skipped) = ("run", "overlap");
    for (job, expected) in jobs.into_iter().zip([
        [run, run, run, run, run],
        [run, skipped, skipped, skipped, skipped],
        // One runs, and one waits for it.
        [run, run, skipped, skipped, skipped],
        // What is newer may have run meanwhile, so nothing is replaced.
        [run, run, skipped, skipped, skipped],
    ]) {
        let ledger = f.by_the_hour(job).await;
        let became: Vec<_> = ledger.values().skip(1).map(String::as_str).collect();
        assert_eq!(became, expected, "{job:?}");
    }
    let waiting =
        "SELECT count(*) FROM sexton.executions WHERE state = 'pending' AND waits = 'queue'";
    assert_eq!(f.number(waiting).await, 2);
}

/// The planner that set the firings aside moved their cursors to the end; an operator paused and resumed one job.
#[tokio::test]
async fn a_single_held_firing_keeps_its_lateness() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    planner.run_once(now(0)).await.unwrap();
    let once = |name: &str, hour: i64, policy| JobSpec {
        misfire: Misfire { policy, ..Misfire::default() },
        past: PastPolicy::Run,
        ..JobSpec::new(name, "work", Schedule::At { at: at(hour * HOUR).into() })
    };
    let (newest, skip) = (MisfirePolicy::FireOnce, MisfirePolicy::Skip);
    let specs = [
        once("too.late", 1, newest),
        once("skipped", 10, skip),
        once("resumed", 10, skip),
        once("late", 10, newest),
    ];
    f.apply(&specs, 0).await;
    // Past by days, and due since its apply: late by less than the window of a day, or by more.
    f.apply(&[once("asked.late", -48, newest)], 10 * HOUR).await;
    f.apply(&[once("asked.early", -48, newest)], 3 * HOUR).await;
    assert_eq!(planner.run_once(now(30 * HOUR + 600)).await.unwrap().held, 6);
    let by = AuditContext { actor: "me", reason: None };
    jobs::pause(f.db.store(), "resumed", by, now(31 * HOUR)).await.unwrap();
    jobs::resume(f.db.store(), "resumed", by, now(32 * HOUR)).await.unwrap();
    assert!(f.settle(HoldDecision::Release, None, 33 * HOUR).await.ended);
    for (name, hour, became) in [
        ("too.late", 1, "outside_window"),
        ("skipped", 10, "misfire_skip"),
        ("resumed", 10, "misfire_skip"),
        ("late", 10, "run"),
        ("asked.late", -48, "run"),
        ("asked.early", -48, "outside_window"),
    ] {
        let job = jobs::find(f.db.store(), name).await.unwrap().unwrap();
        let ledger = f.by_the_hour(JobId::new(job.id)).await;
        assert_eq!(ledger, [(hour, became.to_owned())].into(), "{name}");
    }
}

#[tokio::test]
async fn held_runs_start_at_one_common_rate() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    let job = NewJob { misfire: "fire_all", ..NewJob::new("rated").cron("0 * * * *", at(0)) };
    f.job(job).await;
    sqlx::query("UPDATE sexton.jobs SET misfire_rate = '2/m'").execute(f.db.pool()).await.unwrap();
    planner.run_once(now(0)).await.unwrap();
    for (hour, held) in [(5, 5), (8, 3)] {
        assert_eq!(planner.run_once(now(hour * HOUR + 600)).await.unwrap().held, held);
    }
    assert_eq!(f.number("SELECT count(*) FROM sexton.held_firings").await, 2);
    let settled = f.settle(HoldDecision::Release, None, 8 * HOUR + 1_200).await;
    assert_eq!((settled.claimed, settled.ended), (8, true));
    let begin: Vec<i64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM next_attempt_at)::bigint - 1800030000 FROM sexton.executions
         WHERE scheduled_for > to_timestamp(1800000000) ORDER BY scheduled_for",
    )
    .fetch_all(f.db.pool())
    .await
    .unwrap();
    assert_eq!(begin, [0, 30, 60, 90, 120, 150, 180, 210]);
}

/// Both have read the same jobs before either has decided, and wait for their rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_of_two_concurrent_operators_finds_nothing_and_reports_it() {
    let f = Fixture::without_broker().await;
    let planner = f.holding();
    f.hourly(&planner).await;
    planner.run_once(now(5 * HOUR + 600)).await.unwrap();
    let other = f.db.other_store().unwrap();
    let mut others = other.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.jobs FOR UPDATE").execute(&mut *others).await.unwrap();
    let free = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                       AND wait_event_type = 'Lock' AND query LIKE '-- lock_held_jobs%'";
        while f.number(waiting).await < 2 {
            tokio::task::yield_now().await;
        }
        others.rollback().await.unwrap();
    };
    let (one, two, ()) = tokio::join!(
        f.settle(HoldDecision::Release, None, 6 * HOUR),
        f.settle(HoldDecision::Release, None, 6 * HOUR),
        free
    );
    assert_eq!((one.jobs + two.jobs, one.claimed + two.claimed), (3, 6));
    let releases = "SELECT count(*) FROM sexton.operator_actions WHERE action = 'release_catch_up'";
    assert_eq!(f.number(releases).await, 3);
}
