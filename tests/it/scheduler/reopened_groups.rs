//! Incidents of groups of failures that an operator resolved and that failed again.

use sexton_model::failures::GroupDecision;
use sexton_model::fingerprint::fingerprint;
use sexton_model::id::JobId;
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::maintenance::failure_aggregator::FailureAggregator;
use sexton_store::failures::{GroupChange, decide};
use sexton_store::incidents::find;
use sexton_tests::factory::{NewExecution, NewJob};
use sqlx::Connection as _;

use super::incidents::{channels, notifications};
use super::job_monitors::{BY, incidents, sql, summary};
use super::{Fixture, at, now};

/// The group of the factory's failures.
fn group() -> String {
    fingerprint("exit_1", "it said no").to_string()
}

async fn set(f: &Fixture, decision: GroupDecision, seconds: i64) {
    let change = GroupChange::Decide(decision);
    decide(f.db.store(), &group(), change, BY, now(seconds)).await.unwrap();
}

/// Resolved groups that a round found failed again.
async fn round(f: &Fixture, seconds: i64) -> usize {
    FailureAggregator::new(f.store()).run_once(now(seconds)).await.unwrap().reopened
}

async fn fail(f: &Fixture, job: JobId, seconds: i64) {
    f.insert(NewExecution::new(job, State::Failed, at(seconds))).await;
}

/// Two jobs that fail alike; the second is of the team `billing`.
async fn resolved(f: &Fixture) -> [JobId; 2] {
    let jobs = [f.job(NewJob::new("ads.bill")).await, f.job(NewJob::new("shop.charge")).await];
    sql(f, "UPDATE sexton.jobs SET severity = 'high' WHERE name = 'ads.bill'").await;
    sql(f, "UPDATE sexton.jobs SET labels = '{\"team\": \"billing\"}' WHERE name = 'shop.charge'")
        .await;
    fail(f, jobs[0], 10).await;
    assert_eq!(round(f, 11).await, 0, "nobody has decided anything");
    set(f, GroupDecision::Resolved, 20).await;
    assert_eq!(round(f, 21).await, 0);
    assert_eq!(summary(f).await, Vec::<String>::new());
    jobs
}

#[tokio::test]
async fn a_resolved_group_that_fails_again_is_one_incident_until_an_operator_decides_anew() {
    let f = Fixture::without_broker().await;
    channels(&f, &["ops", "billing"]).await;
    sql(&f, "INSERT INTO sexton.routes (position, labels, severities, channels) VALUES
             (1, '{}', '{high}', '{ops}'), (2, '{\"team\": \"billing\"}', '{}', '{billing}'), (3, '{\"team\": \"ads\"}', '{}', '{ops}')")
        .await;
    let [ads, shop] = resolved(&f).await;
    fail(&f, ads, 30).await;
    fail(&f, shop, 31).await;
    // Of two schedulers, one.
    let (one, other) = tokio::join!(round(&f, 32), round(&f, 32));
    assert_eq!(one + other, 1);
    assert_eq!(summary(&f).await, ["reopened_group open 2"]);
    let incident = &incidents(&f).await[0];
    let digits = &group()[..8];
    assert_eq!((incident.subject_kind.as_str(), &incident.subject), ("group", &group()));
    assert_eq!(incident.name, format!("{digits} it said no"));
    assert_eq!((incident.severity.as_str(), incident.opened_at), ("high", at(32)));
    assert_eq!((incident.job_id, &incident.labels["team"]), (Some(shop.get()), &"billing".into()));
    assert_eq!(
        incident.detail,
        "2 executions failed since ann resolved the group at 2027-01-15T08:00:20Z: exit_1: it said no\n\
         failed now: 3 of 2 jobs: ads.bill, shop.charge"
    );
    assert_eq!(notifications(&f).await, ["billing opened 32", "ops opened 32"]);
    let found = find(f.db.store(), digits, 8).await.unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [incident.id]);

    // Further failures add to it, and nothing is sent.
    fail(&f, ads, 40).await;
    assert_eq!(round(&f, 41).await, 1);
    assert_eq!(summary(&f).await, ["reopened_group open 3"]);
    assert_eq!(notifications(&f).await.len(), 2);

    set(&f, GroupDecision::Resolved, 50).await;
    assert_eq!(summary(&f).await, ["reopened_group resolved 3"]);
    assert_eq!(
        notifications(&f).await,
        ["billing opened 32", "ops opened 32", "billing resolved 50", "ops resolved 50"]
    );
    // Within minutes it is the same incident.
    fail(&f, ads, 60).await;
    assert_eq!(round(&f, 61).await, 1);
    assert_eq!(summary(&f).await, ["reopened_group open 4"]);
    set(&f, GroupDecision::Muted, 70).await;
    assert_eq!(summary(&f).await, ["reopened_group resolved 4"]);
    fail(&f, ads, 80).await;
    assert_eq!(round(&f, 81).await, 0, "a muted group stays silent");
    set(&f, GroupDecision::Open, 90).await;
    fail(&f, ads, 100).await;
    assert_eq!(round(&f, 101).await, 0, "nobody says that its cause is gone");
    assert_eq!(summary(&f).await, ["reopened_group resolved 4"]);
}

#[tokio::test]
async fn the_incident_of_a_group_ends_when_nothing_of_it_is_failed_any_more() {
    let f = Fixture::without_broker().await;
    let [ads, shop] = resolved(&f).await;
    fail(&f, ads, 30).await;
    fail(&f, shop, 31).await;
    assert_eq!(round(&f, 32).await, 1);
    let discard = "UPDATE sexton.executions SET state = 'discarded' WHERE state = 'failed'";
    sql(&f, &format!("{discard} AND finished_at < to_timestamp(1800000031)")).await;
    round(&f, 40).await;
    assert_eq!(summary(&f).await, ["reopened_group open 2"], "one is failed");
    sql(&f, discard).await;
    round(&f, 50).await;
    assert_eq!(summary(&f).await, ["reopened_group resolved 2"]);
    sql(&f, "UPDATE sexton.executions SET state = 'failed' WHERE state = 'discarded'").await;
    assert_eq!(round(&f, 60).await, 0, "what is restored has not failed again");
    // Failed, and requeued before anybody has looked: there is nothing to respond to.
    sql(&f, discard).await;
    round(&f, 700).await;
    fail(&f, ads, 1_000).await;
    sql(&f, discard).await;
    assert_eq!(round(&f, 1_001).await, 0);
    assert_eq!(summary(&f).await, ["reopened_group resolved 2"]);
}

/// A scheduler dies after it has added the failures up and before it commits. An execution that fails meanwhile waits for
/// nobody.
#[tokio::test]
async fn a_crash_leaves_new_failures_of_a_resolved_group_to_the_next_scheduler() {
    let f = Fixture::without_broker().await;
    let [ads, shop] = resolved(&f).await;
    fail(&f, ads, 30).await;
    // The incident that opens waits for one of the same group that is not committed.
    let mut other = sqlx::PgConnection::connect(f.db.url()).await.unwrap();
    let mut blocking = other.begin().await.unwrap();
    sqlx::query(
        "INSERT INTO sexton.incidents (id, subject_kind, subject, name, cause, severity, detail, state, opened_at, changed_at)
         VALUES (gen_random_uuid(), 'group', $1, 'x', 'reopened_group', 'high', 'x', 'open', now(), now())",
    )
    .bind(group())
    .execute(&mut *blocking)
    .await
    .unwrap();
    let aggregator = FailureAggregator::new(f.store());
    let running = tokio::spawn(async move { aggregator.run_once(now(31)).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                   AND wait_event_type = 'Lock' AND query LIKE '%open_incident%'";
    while !running.is_finished() && f.number(waiting).await == 0 {}
    fail(&f, shop, 32).await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()
                AND wait_event_type = 'Lock' AND query LIKE '%open_incident%'";
    assert_eq!(f.number(kill).await, 1);
    running.await.unwrap().unwrap_err();
    blocking.rollback().await.unwrap();
    assert_eq!(summary(&f).await, Vec::<String>::new());
    assert_eq!(round(&f, 40).await, 1);
    assert_eq!(summary(&f).await, ["reopened_group open 2"]);
    assert_eq!(round(&f, 41).await, 0, "once");
}
