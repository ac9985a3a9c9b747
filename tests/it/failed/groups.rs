//! Groups: what they are called, when they were seen, what was decided about them.

use chrono::Duration;
use sexton_model::failures::{FailureFilter, GroupDecision, GroupState, Order};
use sexton_model::fingerprint::fingerprint;
use sexton_store::failures::{
    DecideError, Group, GroupChange, GroupFilter, GroupOrder, MutedMatches, aggregate, count_muted,
    decide, list_groups, name_groups, prune_groups, search, trends,
};
use sexton_store::operator::AuditContext;

use super::{DISCARD, REQUEUE, RESTORE, Yard, at};

const BY: AuditContext<'static> = AuditContext { actor: "tester", reason: Some("known") };

async fn all(yard: &Yard) -> Vec<Group> {
    let filter = GroupFilter { empty: true, ..GroupFilter::default() };
    list_groups(yard.db.store(), &filter, GroupOrder::Count, None, 100).await.unwrap()
}

async fn aggregate_all(yard: &Yard) {
    aggregate(yard.db.store(), 1_000, None).await.unwrap();
    name_groups(yard.db.store(), 100).await.unwrap();
}

#[tokio::test]
async fn a_group_reads_the_same_before_and_after_aggregation() {
    let yard = Yard::new().await;
    for (second, message) in [(1, "card 1 declined"), (9, "card 22 declined"), (5, "disk full")] {
        yard.failure(second, message).insert(&yard).await;
    }
    let before = all(&yard).await;
    let listed: Vec<_> = before.iter().map(|g| (g.pattern.as_str(), g.standing, g.jobs)).collect();
    assert_eq!(listed, [("card <n> declined", 2, 1), ("disk full", 1, 1)]);
    assert_eq!((before[0].first_seen, before[0].last_seen), (Some(at(1)), Some(at(9))));
    assert_eq!((before[0].error_class.as_str(), before[0].state), ("exit_1", GroupState::Open));
    aggregate_all(&yard).await;
    assert_eq!(all(&yard).await, before);
    let of_other = GroupFilter { job: Some(yard.jobs[1].get()), ..GroupFilter::default() };
    assert_eq!(
        list_groups(yard.db.store(), &of_other, GroupOrder::Last, None, 9).await.unwrap(),
        []
    );
}

#[tokio::test]
async fn a_resolved_group_reopens_by_a_new_failure_and_not_by_a_restore() {
    let yard = Yard::new().await;
    let one = yard.failure(1, "disk full").insert(&yard).await;
    let group = fingerprint("exit_1", "disk full").to_string();
    yard.sql(DISCARD, one).await;
    let resolve = GroupChange::Decide(GroupDecision::Resolved);
    decide(yard.db.store(), &group, resolve, BY, Some(at(10))).await.unwrap();
    assert_eq!(all(&yard).await[0].state, GroupState::Resolved);
    for _ in 0..2 {
        yard.sql(RESTORE, one).await;
        assert_eq!(all(&yard).await[0].state, GroupState::Resolved, "restored, not failed");
        yard.sql(DISCARD, one).await;
        aggregate_all(&yard).await;
    }
    yard.failure(11, "disk full").insert(&yard).await;
    assert_eq!(all(&yard).await[0].state, GroupState::Reopened);
    let reopened = GroupFilter { state: Some(GroupState::Reopened), ..GroupFilter::default() };
    aggregate_all(&yard).await;
    assert_eq!(
        list_groups(yard.db.store(), &reopened, GroupOrder::First, None, 9).await.unwrap().len(),
        1
    );
    decide(yard.db.store(), &group, resolve, BY, Some(at(20))).await.unwrap();
    assert_eq!(all(&yard).await[0].state, GroupState::Resolved, "resolved again");
}

#[tokio::test]
async fn a_group_decision_is_audited_once() {
    let yard = Yard::new().await;
    yard.failure(1, "disk full").insert(&yard).await;
    let group = fingerprint("exit_1", "disk full").to_string();
    let mute =
        || decide(yard.db.store(), &group, GroupChange::Decide(GroupDecision::Muted), BY, None);
    let (one, other) = tokio::join!(mute(), mute());
    let refusals = [one.err(), other.err()];
    let refusals: Vec<_> = refusals.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(refusals, [format!("group {group} is muted already, by tester")]);
    let note = |text| decide(yard.db.store(), &group, GroupChange::Note(text), BY, None);
    assert_eq!(note(" ask ann ").await.unwrap().note.as_deref(), Some("ask ann"));
    assert!(matches!(note("ask ann").await, Err(DecideError::Already { .. })));
    assert_eq!(all(&yard).await[0].state, GroupState::Muted, "a note decides nothing");
    let actions: Vec<(String, serde_json::Value, serde_json::Value)> =
        sqlx::query_as("SELECT action, before, after FROM sexton.operator_actions ORDER BY id")
            .fetch_all(yard.pool())
            .await
            .unwrap();
    let names: Vec<&str> = actions.iter().map(|action| action.0.as_str()).collect();
    assert_eq!(names, ["group_mute", "group_note"]);
    assert_eq!((&actions[0].1["state"], &actions[0].2["state"]), (&"open".into(), &"muted".into()));
    let unknown =
        decide(yard.db.store(), "0123456789abcdef", GroupChange::Note("x"), BY, None).await;
    assert!(matches!(unknown, Err(DecideError::Missing(_))));
}

#[tokio::test]
async fn muted_groups_are_excluded_unless_requested() {
    let yard = Yard::new().await;
    let muted = yard.failure(1, "disk full").insert(&yard).await;
    let other = yard.failure(2, "no route").insert(&yard).await;
    let group = fingerprint("exit_1", "disk full");
    let change = GroupChange::Decide(GroupDecision::Muted);
    decide(yard.db.store(), &group.to_string(), change, BY, None).await.unwrap();
    for (filter, expected) in [
        (FailureFilter::default(), vec![other]),
        (FailureFilter { muted: true, ..FailureFilter::default() }, vec![other, muted]),
        (FailureFilter { fingerprint: Some(group), ..FailureFilter::default() }, vec![muted]),
    ] {
        let found = search(yard.db.store(), &filter, Order::Newest, None, 10).await.unwrap();
        let ids: Vec<_> = found.iter().map(|found| found.execution_id).collect();
        assert_eq!(ids, expected, "{filter}");
    }
}

#[tokio::test]
async fn muted_matches_are_counted_by_group_up_to_an_instant_and_a_limit() {
    let yard = Yard::new().await;
    let store = yard.db.store();
    for (second, message) in
        [(1, "disk full"), (2, "no route"), (3, "no route"), (4, "no such host")]
    {
        yard.failure(second, message).insert(&yard).await;
    }
    let everything = FailureFilter::default();
    assert_eq!(count_muted(store, &everything, None, 10).await.unwrap(), MutedMatches::default());
    let [disk, route] =
        ["disk full", "no route"].map(|text| fingerprint("exit_1", text).to_string());
    for group in [&disk, &route] {
        decide(store, group, GroupChange::Decide(GroupDecision::Muted), BY, None).await.unwrap();
    }
    let counted = |count, more, groups: &[(&String, u64)]| MutedMatches {
        count,
        more,
        groups: groups.iter().map(|(group, count)| ((*group).clone(), *count)).collect(),
    };
    let text = FailureFilter { text: Some("disk".to_owned()), ..FailureFilter::default() };
    for (filter, until, most, expected) in [
        (&everything, None, 10, counted(3, false, &[(&route, 2), (&disk, 1)])),
        (&everything, None, 3, counted(3, true, &[(&route, 2), (&disk, 1)])),
        (&everything, None, 4, counted(3, false, &[(&route, 2), (&disk, 1)])),
        (&everything, Some(at(2)), 10, counted(2, false, &sorted(&[(&disk, 1), (&route, 1)]))),
        (&text, None, 10, counted(1, false, &[(&disk, 1)])),
        (
            &FailureFilter { muted: true, ..FailureFilter::default() },
            None,
            10,
            MutedMatches::default(),
        ),
        (
            &FailureFilter { discarded: true, ..FailureFilter::default() },
            None,
            10,
            MutedMatches::default(),
        ),
    ] {
        assert_eq!(
            count_muted(store, filter, until, most).await.unwrap(),
            expected,
            "{filter} {most}"
        );
    }
    let cut = count_muted(store, &everything, None, 2).await.unwrap();
    assert_eq!((cut.count, cut.more), (2, true));
}

/// By their fingerprints, as groups of one size are.
fn sorted<'a>(groups: &[(&'a String, u64)]) -> Vec<(&'a String, u64)> {
    let mut groups = groups.to_vec();
    groups.sort();
    groups
}

#[tokio::test]
async fn a_trend_counts_failures_by_the_hour() {
    let yard = Yard::new().await;
    let now = at(0);
    let group = fingerprint("exit_1", "disk full").to_string();
    for (hours, times) in [(0, 1), (1, 2), (23, 3), (24, 4)] {
        for _ in 0..times {
            let mut failure = yard.failure(0, "disk full");
            failure.at = now - Duration::hours(hours);
            let id = failure.insert(&yard).await;
            yard.sql(REQUEUE, id).await;
        }
        // Half of them folded.
        if hours == 1 {
            aggregate(yard.db.store(), 1_000, Some(now)).await.unwrap();
        }
    }
    let ask = async || {
        let of = [group.clone()];
        trends(yard.db.store(), &of, Some(now)).await.unwrap().remove(&group).unwrap()
    };
    let before = ask().await;
    assert_eq!((before[23], before[22], before[0]), (1, 2, 3));
    assert_eq!(before.iter().sum::<u64>(), 6, "older days are left out");
    aggregate(yard.db.store(), 1_000, Some(now)).await.unwrap();
    assert_eq!(ask().await, before);
}

#[tokio::test]
async fn an_undecided_group_is_pruned_after_its_failures() {
    let yard = Yard::new().await;
    for message in ["disk full", "no route", "bad gateway"] {
        let id = yard.failure(0, message).insert(&yard).await;
        if message != "bad gateway" {
            yard.sql(REQUEUE, id).await;
        }
    }
    let noted = fingerprint("exit_1", "no route").to_string();
    decide(yard.db.store(), &noted, GroupChange::Note("ask ann"), BY, Some(at(1))).await.unwrap();
    aggregate_all(&yard).await;
    let days = |days| Some(at(0) + Duration::days(days));
    for (day, left) in [(29, 3), (31, 2), (399, 2), (401, 1)] {
        prune_groups(yard.db.store(), days(day)).await.unwrap();
        assert_eq!(all(&yard).await.len(), left, "day {day}");
    }
}
