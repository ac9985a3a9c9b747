//! Incidents: what people do with them, what is to be sent about them, and how they are removed.

use chrono::{DateTime, Utc};
use sexton_model::state::State;
use sexton_store::incidents::{IncidentAction, act};
use sexton_store::retention::{RetentionPolicy, RetentionTarget};
use sexton_tests::factory::NewExecution;
use sexton_tests::retention::pass;

use super::job_monitors::{BY, check, incidents, job, sql, summary};
use super::{Fixture, at, now};

/// Channels, which nothing is sent to here.
pub(super) async fn channels(f: &Fixture, names: &[&str]) {
    for name in names {
        let row = format!("VALUES ('{name}', 'webhook', '{{}}', now())");
        sql(f, &format!("INSERT INTO sexton.channels (name, kind, config, updated_at) {row}"))
            .await;
    }
}

/// `channel kind second` of each notification, with its state if it does not wait.
pub(super) async fn notifications(f: &Fixture) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT format('%s %s %s', channel, kind, extract(epoch FROM due_at)::int - 1800000000)
            || CASE state WHEN 'pending' THEN '' ELSE ' ' || state END
         FROM sexton.notifications ORDER BY due_at, channel, id",
    )
    .fetch_all(f.db.pool())
    .await
    .unwrap()
}

#[tokio::test]
async fn an_operator_acknowledges_silences_and_resolves_and_the_next_violation_is_a_new_incident() {
    let f = Fixture::without_broker().await;
    let id = job(&f, "alert_after = 1").await;
    f.insert(NewExecution::new(id, State::Failed, at(10))).await;
    check(&f, 11).await;
    let incident = incidents(&f).await[0].id;
    let acts =
        async |action, seconds: i64| act(f.db.store(), incident, action, BY, now(seconds)).await;
    acts(IncidentAction::Acknowledge, 12).await.unwrap();
    let again = acts(IncidentAction::Acknowledge, 13).await.unwrap_err().to_string();
    assert_eq!(again, format!("incident {incident} is acknowledged already, by ann"));
    let until: DateTime<Utc> = at(5_000);
    acts(IncidentAction::Silence(until), 14).await.unwrap();
    assert!(
        acts(IncidentAction::Silence(at(1)), 15).await.unwrap_err().to_string().contains("past")
    );
    acts(IncidentAction::Resolve, 16).await.unwrap();
    let over = acts(IncidentAction::Acknowledge, 17).await.unwrap_err().to_string();
    assert!(over.contains("by ann, so there is nothing to acknowledge"), "{over}");
    f.insert(NewExecution::new(id, State::Failed, at(30))).await;
    check(&f, 31).await;
    assert_eq!(summary(&f).await, ["parked open 1", "parked resolved 1"]);
    // The silence of the subject goes on.
    assert_eq!(incidents(&f).await[0].silenced_until, Some(until));
    let audited = "SELECT count(*) FROM sexton.operator_actions WHERE action LIKE '%_incident' AND actor = 'ann'
                   AND reason = 'because' AND after->>'incident' IS NOT NULL";
    assert_eq!(f.number(audited).await, 3);
}

/// The notifications are of the transaction that opens the incident.
#[tokio::test]
async fn what_is_sent_follows_the_routes_and_is_written_with_the_incident() {
    let f = Fixture::without_broker().await;
    channels(&f, &["ops", "pager", "chief"]).await;
    sql(&f, "INSERT INTO sexton.routes (position, labels, severities, channels, escalate_ms, escalate_to) VALUES
             (1, '{}', '{}', '{ops}', NULL, '{}'),
             (2, '{\"team\": \"billing\"}', '{high}', '{pager}', 900000, '{chief}'),
             (3, '{\"team\": \"ads\"}', '{}', '{ads}', NULL, '{}')").await;
    let id = job(&f, "severity = 'high', labels = '{\"team\": \"billing\"}'").await;
    f.insert(NewExecution::new(id, State::Failed, at(10))).await;
    check(&f, 11).await;
    assert_eq!(
        notifications(&f).await,
        ["ops opened 11", "pager opened 11", "chief escalated 911"]
    );
    // The escalation belongs to the opening, and goes with it.
    f.insert(NewExecution::new(id, State::Succeeded, at(20))).await;
    check(&f, 21).await;
    let expected = [
        "ops opened 11",
        "pager opened 11",
        "ops resolved 21",
        "pager resolved 21",
        "chief escalated 911 dropped",
    ];
    assert_eq!(notifications(&f).await, expected, "and nothing to `ads`, which is no channel");
}

#[tokio::test]
async fn a_silence_delays_the_escalation_and_its_end_reminds_those_who_know() {
    let f = Fixture::without_broker().await;
    channels(&f, &["ops", "chief"]).await;
    sql(
        &f,
        "INSERT INTO sexton.routes (position, channels, escalate_ms, escalate_to)
             VALUES (1, '{ops}', 900000, '{chief}')",
    )
    .await;
    let id = job(&f, "alert_after = 1").await;
    f.insert(NewExecution::new(id, State::Failed, at(10))).await;
    check(&f, 11).await;
    let incident = incidents(&f).await[0].id;
    let act = async |action, seconds| act(f.db.store(), incident, action, BY, now(seconds)).await;
    act(IncidentAction::Silence(at(5_000)), 20).await.unwrap();
    let expected = ["ops opened 11", "chief escalated 5000", "ops reminder 5000"];
    assert_eq!(notifications(&f).await, expected);
    act(IncidentAction::Unsilence, 30).await.unwrap();
    let expected =
        ["ops opened 11", "ops reminder 30", "chief escalated 5000", "ops reminder 5000 dropped"];
    assert_eq!(notifications(&f).await, expected);
    assert_eq!(incidents(&f).await[0].silenced_until, None);
    let audited = "SELECT count(*) FROM sexton.operator_actions
                   WHERE action = 'unsilence_incident' AND after->'silenced_until' = 'null'";
    assert_eq!(f.number(audited).await, 1);
}

#[tokio::test]
async fn retention_removes_resolved_incidents_with_all_that_belongs_to_them() {
    let f = Fixture::without_broker().await;
    channels(&f, &["ops"]).await;
    sql(&f, "INSERT INTO sexton.routes (position, channels) VALUES (1, '{ops}')").await;
    let id = job(&f, "alert_after = 1").await;
    f.insert(NewExecution::new(id, State::Failed, at(10))).await;
    check(&f, 11).await;
    let days = RetentionPolicy { days: 30, audit_days: None };
    let prune = async |after: i64| {
        pass(&f.store(), days, &[RetentionTarget::Incidents], 1_000, now(after * 86_400))
            .await
            .unwrap();
        f.number("SELECT (SELECT count(*) FROM sexton.incidents) + (SELECT count(*) FROM sexton.incident_events)
                  + (SELECT count(*) FROM sexton.notifications)").await
    };
    assert_eq!(prune(400).await, 3, "an open one stays");
    let incident = incidents(&f).await[0].id;
    act(f.db.store(), incident, IncidentAction::Resolve, BY, now(20)).await.unwrap();
    assert_eq!(prune(29).await, 5);
    assert_eq!(prune(31).await, 0);
}
