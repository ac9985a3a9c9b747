//! The oracle can find each violation, and finds none where there is none.

use super::*;

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn begin(key: &str, attempt: i32) -> Entry {
    Entry::Begin { key: key.to_owned(), attempt, execution: id(1) }
}

fn end(key: &str, attempt: i32) -> Entry {
    Entry::End { key: key.to_owned(), attempt, execution: id(1) }
}

fn attempt(number: i32, opened: i64, previous: Option<(i64, &str)>) -> AttemptRow {
    AttemptRow {
        execution: id(1),
        number,
        opened_at: at(opened),
        outcome: None,
        previous: previous.map(|(ended, outcome)| (at(ended), outcome.to_owned())),
        retry_delay: TimeDelta::seconds(3),
    }
}

fn succeeded(attempt: AttemptRow) -> AttemptRow {
    AttemptRow { outcome: Some("succeeded".to_owned()), ..attempt }
}

fn action(action: &str, second: i64) -> Action {
    Action { execution: id(1), action: action.to_owned(), at: at(second) }
}

#[test]
fn a_history_without_a_fault_breaks_nothing() {
    let evidence = Evidence {
        ledger: vec![begin("k", 1), end("k", 1), begin("k", 2), end("k", 2), begin("l", 1)],
        later: vec![end("k", 4)],
        whole: true,
        firings: Firings {
            claimed: vec![at(1), at(2), at(5)],
            gaps: vec![(at(3), at(4))],
            cursor: Some(at(6)),
        },
        attempts: vec![
            attempt(1, 0, None),
            attempt(2, 4, Some((1, "error"))),
            // A crash is retried at once.
            attempt(3, 5, Some((5, "lost"))),
            // A requeue does not wait for the delay.
            succeeded(attempt(4, 7, Some((6, "permanent")))),
        ],
        actions: vec![action("requeue", 7)],
        ..Evidence::default()
    };
    assert_eq!(judge(&evidence), []);
}

#[test]
fn the_oracle_reports_a_task_started_twice_for_one_attempt() {
    let ledger = vec![begin("k", 1), begin("k", 1), begin("k", 1), begin("k", 2), begin("l", 1)];
    let evidence = Evidence { ledger, ..Evidence::default() };
    assert_eq!(judge(&evidence), [Violation::OpenedTwice { key: "k".to_owned(), attempt: 1 }]);
}

#[test]
fn the_oracle_reports_concurrent_runs() {
    let overlap = Entry::Overlap { key: "k".to_owned(), attempt: 2 };
    let evidence = Evidence { ledger: vec![overlap], ..Evidence::default() };
    assert_eq!(judge(&evidence), [Violation::Overlap { key: "k".to_owned(), attempt: 2 }]);
}

#[test]
fn the_oracle_reports_a_retry_before_its_delay() {
    let attempts = vec![attempt(2, 3, Some((1, "error")))];
    let evidence = Evidence { attempts, ..Evidence::default() };
    let early = Violation::Early { execution: id(1), attempt: 2, milliseconds: 1_000 };
    assert_eq!(judge(&evidence), [early]);
}

#[test]
fn the_oracle_reports_an_unrequested_requeue_and_accepts_a_manual_one() {
    let actions = vec![action("hand_requeue", 5)];
    let unasked = Evidence { actions, ..Evidence::default() };
    assert_eq!(judge(&unasked), [Violation::Unasked { execution: id(1) }]);
    let evidence_with_move = Evidence { moved: HashSet::from([id(1)]), ..unasked };
    assert_eq!(judge(&evidence_with_move), []);
}

#[test]
fn the_oracle_reports_an_attempt_after_a_cancel_or_discard() {
    for ended in ["cancel", "discard"] {
        let evidence = |opened| Evidence {
            attempts: vec![attempt(1, opened, None)],
            actions: vec![action(ended, 5)],
            ..Evidence::default()
        };
        assert_eq!(judge(&evidence(4)), []);
        let found = judge(&evidence(6));
        assert!(matches!(&found[..], [Violation::RanAfterItsEnd { attempt: 1, .. }]), "{found:?}");
    }
}

#[test]
fn a_restored_discard_ends_nothing() {
    let actions = vec![action("discard", 5), action("restore", 6)];
    let attempts = vec![attempt(1, 7, None)];
    let evidence = Evidence { attempts, actions, ..Evidence::default() };
    assert_eq!(judge(&evidence), []);
    let attempts = vec![attempt(1, 5, None), attempt(2, 6, None)];
    let actions = vec![action("discard", 5), action("restore", 7)];
    let evidence = Evidence { attempts, actions, ..Evidence::default() };
    assert!(matches!(&judge(&evidence)[..], [Violation::RanAfterItsEnd { attempt: 2, .. }]));
}

#[test]
fn the_oracle_reports_a_rerun_after_an_applied_effect_except_after_a_crash() {
    let effect = Entry::Effect { key: "k".to_owned(), attempt: 1, execution: id(1) };
    let evidence = |later, ended| Evidence {
        later,
        attempts: vec![attempt(2, 7, Some((1, ended)))],
        actions: vec![action("requeue", 5)],
        ..Evidence::default()
    };
    let twice = Violation::HappenedTwice { execution: id(1), attempt: 2 };
    let again = vec![begin("k", 1), effect.clone(), end("k", 1), begin("k", 2)];
    assert_eq!(judge(&evidence(again.clone(), "permanent")), [twice]);
    assert_eq!(judge(&evidence(again, "lost")), []);
    // It had not happened, and has now.
    let later = vec![begin("k", 1), end("k", 1), begin("k", 2), effect];
    assert_eq!(judge(&evidence(later, "permanent")), []);
}

#[test]
fn the_oracle_reports_an_execution_resolved_without_an_effect() {
    let effect = Entry::Effect { key: "k".to_owned(), attempt: 1, execution: id(1) };
    let resolved = Evidence { resolved: vec![id(1)], ..Evidence::default() };
    assert_eq!(judge(&resolved), [Violation::NotRun { execution: id(1), attempt: None }]);
    let happened = Evidence { later: vec![effect], ..resolved };
    assert_eq!(judge(&happened), []);
}

#[test]
fn the_oracle_reports_wrong_bulk_counts() {
    let evidence = Evidence { held: vec!["bulk 1".to_owned()], ..Evidence::default() };
    assert_eq!(judge(&evidence), [Violation::Held { what: "bulk 1".to_owned() }]);
}

#[test]
fn the_oracle_reports_two_executions_of_one_key() {
    let evidence = Evidence { double_keys: vec!["a.b:k".to_owned()], ..Evidence::default() };
    assert_eq!(judge(&evidence), [Violation::DoubleKey { key: "a.b:k".to_owned() }]);
}

#[test]
fn the_oracle_reports_a_success_missing_in_the_ledger() {
    let evidence = Evidence {
        ledger: vec![begin("k", 1)],
        later: vec![begin("k", 1)],
        attempts: vec![succeeded(attempt(1, 0, None))],
        ..Evidence::default()
    };
    assert_eq!(judge(&evidence), [Violation::NotRun { execution: id(1), attempt: Some(1) }]);
    // The end of another attempt does not do.
    let other = Evidence { later: vec![end("k", 2)], ..evidence.clone() };
    assert_eq!(judge(&other), [Violation::NotRun { execution: id(1), attempt: Some(1) }]);
    let run = Evidence { later: vec![end("k", 1)], ..evidence };
    assert_eq!(judge(&run), []);
}

#[test]
fn the_oracle_reports_a_succeeded_execution_without_a_succeeded_attempt() {
    let evidence = Evidence { unproven: vec![id(1)], ..Evidence::default() };
    assert_eq!(judge(&evidence), [Violation::NotRun { execution: id(1), attempt: None }]);
}

#[test]
fn the_oracle_reports_a_run_without_a_row() {
    let ledger = vec![begin("k", 1), begin("k", 2)];
    let attempts = vec![attempt(1, 0, None)];
    let part = Evidence { ledger, attempts, ..Evidence::default() };
    assert_eq!(judge(&part), []);
    let whole = Evidence { whole: true, ..part };
    assert_eq!(judge(&whole), [Violation::Unrecorded { execution: id(1), attempt: 2 }]);
}

#[test]
fn the_oracle_reports_every_attempt_after_a_success() {
    let attempts = vec![attempt(2, 9, Some((1, "succeeded")))];
    let evidence =
        Evidence { attempts, actions: vec![action("requeue", 5)], ..Evidence::default() };
    let found = judge(&evidence);
    assert!(matches!(&found[..], [Violation::RanAfterItsEnd { attempt: 2, .. }]), "{found:?}");
}

#[test]
fn the_oracle_reports_an_attempt_after_a_permanent_failure_unless_requeued() {
    let attempts = vec![attempt(2, 9, Some((1, "permanent")))];
    let evidence = Evidence { attempts, ..Evidence::default() };
    let found = judge(&evidence);
    assert!(matches!(&found[..], [Violation::RanAfterItsEnd { attempt: 2, .. }]), "{found:?}");
    let evidence_with_move = Evidence { actions: vec![action("requeue", 5)], ..evidence.clone() };
    assert_eq!(judge(&evidence_with_move), []);
    // A request from before the failure was about something else.
    let before = Evidence { actions: vec![action("requeue", 0)], ..evidence };
    assert_eq!(judge(&before).len(), 1);
}

#[test]
fn the_oracle_reports_a_firing_without_an_execution_or_gap() {
    let lost = |claimed: &[i64], gaps: &[(i64, i64)], cursor: Option<i64>| {
        let firings = Firings {
            claimed: claimed.iter().map(|second| at(*second)).collect(),
            gaps: gaps.iter().map(|(first, last)| (at(*first), at(*last))).collect(),
            cursor: cursor.map(at),
        };
        judge(&Evidence { firings, ..Evidence::default() })
    };
    let hole = |second, count| Violation::LostFiring { firing: at(second), count };
    assert_eq!(lost(&[], &[], Some(9)), []);
    // In the order of their claims, not of their times.
    assert_eq!(lost(&[3, 1, 2, 2], &[], Some(4)), []);
    assert_eq!(lost(&[1, 2, 6], &[(3, 5)], Some(4)), []);
    assert_eq!(lost(&[1, 4, 5], &[], None), [hole(2, 2)]);
    assert_eq!(lost(&[1, 2, 6], &[(3, 4)], None), [hole(5, 1)]);
    assert_eq!(lost(&[1, 2], &[(1, 2)], Some(5)), [hole(3, 2)]);
}
