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
    Entry::End { key: key.to_owned(), attempt }
}

fn attempt(number: i32, opened: i64, previous: Option<(i64, &str)>) -> AttemptRow {
    AttemptRow {
        execution: id(1),
        number,
        opened_at: at(opened),
        previous: previous.map(|(ended, outcome)| (at(ended), outcome.to_owned())),
        retry_delay: TimeDelta::seconds(3),
    }
}

fn action(action: &str, second: i64) -> Action {
    Action { execution: id(1), action: action.to_owned(), at: at(second) }
}

#[test]
fn a_history_without_a_fault_breaks_nothing() {
    let evidence = Evidence {
        ledger: vec![begin("k", 1), end("k", 1), begin("k", 2), end("k", 2), begin("l", 1)],
        attempts: vec![
            attempt(1, 0, None),
            attempt(2, 4, Some((1, "error"))),
            // A crash is retried at once.
            attempt(3, 5, Some((5, "lost"))),
            // A requeue does not wait for the delay.
            attempt(4, 7, Some((6, "error"))),
        ],
        actions: vec![action("requeue", 7)],
        ..Evidence::default()
    };
    assert_eq!(judge(&evidence), []);
}

#[test]
fn a_task_that_was_begun_twice_for_one_attempt_is_found_once() {
    let ledger = vec![begin("k", 1), begin("k", 1), begin("k", 1), begin("k", 2), begin("l", 1)];
    let evidence = Evidence { ledger, ..Evidence::default() };
    assert_eq!(judge(&evidence), [Violation::OpenedTwice { key: "k".to_owned(), attempt: 1 }]);
}

#[test]
fn a_run_that_found_another_alive_is_found() {
    let overlap = Entry::Overlap { key: "k".to_owned(), attempt: 2 };
    let evidence = Evidence { ledger: vec![overlap], ..Evidence::default() };
    assert_eq!(judge(&evidence), [Violation::Overlap { key: "k".to_owned(), attempt: 2 }]);
}

#[test]
fn a_retry_before_its_delay_is_over_is_found() {
    let attempts = vec![attempt(2, 3, Some((1, "error")))];
    let evidence = Evidence { attempts, ..Evidence::default() };
    let early = Violation::Early { execution: id(1), attempt: 2, milliseconds: 1_000 };
    assert_eq!(judge(&evidence), [early]);
}

#[test]
fn a_requeue_that_nobody_asked_for_is_found_and_one_that_a_hand_made_is_not() {
    let actions = vec![action("hand_requeue", 5)];
    let unasked = Evidence { actions, ..Evidence::default() };
    assert_eq!(judge(&unasked), [Violation::Unasked { execution: id(1) }]);
    let asked = Evidence { moved: HashSet::from([id(1)]), ..unasked };
    assert_eq!(judge(&asked), []);
}

#[test]
fn an_attempt_after_a_cancel_or_a_discard_is_found_and_one_before_is_not() {
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
fn a_discard_that_was_taken_back_ends_nothing() {
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
fn a_key_with_two_executions_is_found() {
    let evidence = Evidence { double_keys: vec!["a.b:k".to_owned()], ..Evidence::default() };
    assert_eq!(judge(&evidence), [Violation::DoubleKey { key: "a.b:k".to_owned() }]);
}
