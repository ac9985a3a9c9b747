//! Lease and lost: an attempt is its worker's while it renews, and nobody's afterwards.

use std::time::Duration;

use sexton_model::id::ProcessId;
use sexton_model::retry::{AttemptEnd, Decision, LOST, RetryPolicy, decide};
use sexton_store::lease::{AttemptFence, Renewal, renew};
use sexton_store::lost_attempts::{self, LossGrounds, LostAttempt};
use sexton_store::open::{Offer, open, recover};
use sexton_store::running_attempts::{self, RunningAttempt};
use uuid::Uuid;

use super::{Fixture, LEASE, at, request};

async fn renewed(fixture: &Fixture, held: AttemptFence, second: i64) -> Renewal {
    renew(fixture.store(), &[(held, LEASE)], Some(at(second))).await.unwrap()[0]
}

/// What an observer sees of the open attempts.
pub(super) async fn seen(fixture: &Fixture) -> Vec<RunningAttempt> {
    running_attempts::list_page(fixture.store(), None, 100, Some(at(0))).await.unwrap()
}

/// Ends what counts as lost at `second`; returns how many attempts that were.
async fn rescue(fixture: &Fixture, grounds: &LossGrounds<'_>, second: i64) -> usize {
    let found = lost_attempts::find(fixture.store(), grounds, 100).await.unwrap();
    let now = Some(at(second));
    let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
    let decided = |one: LostAttempt| {
        let policy = policy.with(&one.retry);
        let verdict = decide(AttemptEnd::Lost, LOST, one.used, &policy, 0.5);
        (one, verdict)
    };
    let verdicts: Vec<_> = found.into_iter().map(decided).collect();
    lost_attempts::settle(fixture.store(), grounds, &verdicts, now).await.unwrap().len()
}

#[tokio::test]
async fn a_renewed_attempt_is_not_lost_and_one_that_is_not_renewed_is() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let before = seen(&fixture).await;
    assert_eq!((before.len(), before[0].lease), (1, LEASE));
    assert_eq!(renewed(&fixture, held, 15).await, Renewal::Renewed { cancel_requested: false });
    // However late it is by the database's clock.
    assert_eq!(rescue(&fixture, &LossGrounds::Unrenewed(&before), 1_000).await, 0);
    let after = seen(&fixture).await;
    assert_ne!(before, after);
    // And however early.
    assert_eq!(rescue(&fixture, &LossGrounds::Unrenewed(&after), 16).await, 1);
    assert_eq!(fixture.state(id).await, "retrying/2");
    assert_eq!(fixture.attempts(id).await, ["1:lost"]);
    assert_eq!(renewed(&fixture, held, 37).await, Renewal::Fenced);
}

#[tokio::test]
async fn a_renewal_between_the_rescuer_s_look_and_its_write_wins() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let seen = seen(&fixture).await;
    let grounds = LossGrounds::Unrenewed(&seen);
    let found = lost_attempts::find(fixture.store(), &grounds, 100).await.unwrap();
    assert_eq!(found.len(), 1);
    // Nobody has ended the attempt yet. The database's clock stands still: the renewal writes what stood there.
    assert!(matches!(renewed(&fixture, held, 0).await, Renewal::Renewed { .. }));
    let verdict = decide(AttemptEnd::Lost, LOST, found[0].used, &RetryPolicy::default(), 0.5);
    let found = [(found[0].clone(), verdict)];
    let ended = lost_attempts::settle(fixture.store(), &grounds, &found, Some(at(21))).await;
    assert!(ended.unwrap().is_empty());
    assert_eq!(fixture.state(id).await, "running/1");
}

#[tokio::test]
async fn the_first_crash_is_retried_at_once_and_the_third_parks_with_the_evidence() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    fixture.introduce("w1").await;
    let mut second = 0;
    for number in 1..=3 {
        fixture.opened(id, number, second).await;
        let seen = seen(&fixture).await;
        assert_eq!(rescue(&fixture, &LossGrounds::Unrenewed(&seen), second + 21).await, 1);
        second += 10_000;
        if number == 1 {
            assert_eq!(
                fixture.column(id, "(next_attempt_at = relay_after)").await.unwrap(),
                "true"
            );
        }
    }
    assert_eq!(fixture.state(id).await, "failed/4");
    assert_eq!(fixture.column(id, "crashes_used").await.unwrap(), "3");
    let reason = fixture.column(id, "error_message").await.unwrap();
    let begun = |second| at(second).format("%Y-%m-%d %H:%M:%S UTC");
    let evidence = format!(
        "; 3 crashed, no more are allowed: attempt 1 lost on w1, begun {}; attempt 2 lost on w1, \
         begun {}; attempt 3 lost on w1, begun {}",
        begun(0),
        begun(10_000),
        begun(20_000)
    );
    assert!(reason.ends_with(&evidence), "{reason}");
}

#[tokio::test]
async fn a_lost_attempt_is_judged_by_the_budget_that_its_worker_wrote_down() {
    let fixture = Fixture::new().await;
    let once = Offer { max_crashes: 1, ..Offer::new("work") };
    let patient = Offer { max_crashes: 9, ..Offer::new("work") };
    for (offer, job, state) in [
        (&once, None, "failed/2"),
        (&patient, None, "retrying/2"),
        // The job's own goes before the catalogue's.
        (&patient, Some(1_i32), "failed/2"),
        (&once, Some(2), "retrying/2"),
    ] {
        sqlx::query("UPDATE sexton.jobs SET max_crashes = $1")
            .bind(job)
            .execute(fixture.db.pool())
            .await
            .unwrap();
        let id = fixture.claim(&format!("{}-{job:?}", offer.max_crashes)).await;
        let (offers, requests) = (std::slice::from_ref(offer), [request(id, 1)]);
        let now = Some(at(0));
        let opened =
            open(fixture.store(), fixture.worker, "w:1", offers, &requests, LEASE, now).await;
        let opened = opened.unwrap().opened.pop().expect("the ticket should open");
        assert_eq!(
            opened.retry.max_crashes,
            job.map_or(Some(offer.max_crashes), |n| Some(n as u32))
        );
        // A deployer who edits the job meanwhile does not change the attempt's budget.
        sqlx::query("UPDATE sexton.jobs SET max_crashes = 5")
            .execute(fixture.db.pool())
            .await
            .unwrap();
        let seen = seen(&fixture).await;
        assert_eq!(rescue(&fixture, &LossGrounds::Unrenewed(&seen), 21).await, 1);
        assert_eq!(fixture.state(id).await, state, "{offer:?}, {job:?}");
    }
}

#[tokio::test]
async fn a_lost_attempt_that_was_to_be_cancelled_is_cancelled() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    sqlx::query("UPDATE sexton.executions SET cancel_requested = true WHERE id = $1")
        .bind(id.get())
        .execute(fixture.db.pool())
        .await
        .unwrap();
    assert_eq!(renewed(&fixture, held, 5).await, Renewal::Renewed { cancel_requested: true });
    let seen = seen(&fixture).await;
    assert_eq!(rescue(&fixture, &LossGrounds::Unrenewed(&seen), 60).await, 1);
    assert_eq!(fixture.state(id).await, "cancelled/1");
}

#[tokio::test]
async fn the_attempts_of_a_dead_predecessor_are_lost_before_their_lease_is_over() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    fixture.opened(id, 1, 0).await;
    let stranger = [ProcessId::new(Uuid::now_v7())];
    assert_eq!(rescue(&fixture, &LossGrounds::OfWorkers(&stranger), 1).await, 0);
    let dead = [fixture.worker];
    assert_eq!(rescue(&fixture, &LossGrounds::OfWorkers(&dead), 1).await, 1);
    assert_eq!(fixture.state(id).await, "retrying/2");
}

#[tokio::test]
async fn renewals_stay_on_their_page() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    for second in 1..=200 {
        assert!(matches!(renewed(&fixture, held, second).await, Renewal::Renewed { .. }));
    }
    // The counters reach the shared statistics a moment later, at the latest when asked to.
    let mut connection = fixture.db.pool().acquire().await.unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        sqlx::query("SELECT pg_stat_clear_snapshot()").execute(&mut *connection).await.unwrap();
        let (all, hot): (i64, i64) = sqlx::query_as(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = 'sexton' AND relname = 'executions'",
        )
        .fetch_one(&mut *connection)
        .await
        .unwrap();
        if all >= 200 {
            assert!(hot * 100 >= 95 * (all - 1), "{hot} of {all} updates were HOT");
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "the statistics show {all} updates only");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_verdict_of_success_never_comes_from_a_rescuer() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    fixture.opened(id, 1, 0).await;
    let seen = seen(&fixture).await;
    let grounds = LossGrounds::Unrenewed(&seen);
    let found = lost_attempts::find(fixture.store(), &grounds, 1).await.unwrap();
    let claimed = [(found[0].clone(), Decision::Succeed)];
    lost_attempts::settle(fixture.store(), &grounds, &claimed, Some(at(60))).await.unwrap();
    assert_eq!(fixture.state(id).await, "failed/2");
}

#[tokio::test]
async fn an_attempt_keeps_the_lease_that_it_was_opened_with_whatever_becomes_of_its_job() {
    let fixture = Fixture::new().await;
    sqlx::query("UPDATE sexton.jobs SET lease_ms = 7000").execute(fixture.db.pool()).await.unwrap();
    let id = fixture.claim("k").await;
    let request = request(id, 1);
    let opened = fixture.open(request, 0).await.expect("the ticket should open");
    sqlx::query("UPDATE sexton.jobs SET lease_ms = 3600000")
        .execute(fixture.db.pool())
        .await
        .unwrap();
    let again = recover(fixture.store(), &[request], LEASE).await.unwrap();
    // The worker that asks again renews for as long as a rescuer that watches it waits.
    let leases = [opened.lease, again[0].lease, seen(&fixture).await[0].lease];
    assert_eq!(leases, [Duration::from_secs(7); 3]);
}

#[tokio::test]
async fn an_unobserved_attempt_is_not_ended() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.claim("one").await, fixture.claim("other").await);
    for id in [one, other] {
        fixture.opened(id, 1, 0).await;
    }
    let seen = seen(&fixture).await;
    let found =
        lost_attempts::find(fixture.store(), &LossGrounds::Unrenewed(&seen), 100).await.unwrap();
    let fail = |one: &LostAttempt| (one.clone(), Decision::Fail { used: one.used });
    let both: Vec<_> = found.iter().map(fail).collect();
    let grounds = LossGrounds::Unrenewed(&seen[..1]);
    let ended =
        lost_attempts::settle(fixture.store(), &grounds, &both, Some(at(60))).await.unwrap();
    assert_eq!(ended, [seen[0].execution_id]);
}
