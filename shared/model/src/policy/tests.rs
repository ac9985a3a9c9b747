use std::time::Duration;

use super::*;
use crate::incident::Severity;
use crate::job::{Expectations, OnLocked, Overlap, RowLock, Schedule};
use crate::routing::Escalation;

const NOBODY: Circumstances<'_> = Circumstances { routes: &[], workers: &[], is_paused: false };

fn job() -> JobSpec {
    JobSpec::new("billing.charge", "charge", Schedule::Cron { expression: "0 2 * * *".into() })
}

fn route(severities: &[Severity], channels: &[&str]) -> Route {
    let channels = channels.iter().map(ToString::to_string).collect();
    Route { severities: severities.to_vec(), channels, ..Route::default() }
}

/// The statements and the gaps of all sections, a line each.
fn text(job: &JobSpec, known: &Circumstances<'_>) -> String {
    let lines = sheet(job, known).into_iter().flat_map(|section| {
        let missing: Vec<String> =
            section.missing.iter().map(|gap| format!("missing: {gap}")).collect();
        section.statements.into_iter().chain(missing)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_sheet_has_the_five_sections_in_their_order() {
    let titles = sheet(&job(), &NOBODY).map(|section| section.title);
    let expected = [
        "Guarantee",
        "Lock and lease",
        "Missed-run detection",
        "Idempotency key",
        "Failure and dead letter",
    ];
    assert_eq!(titles, expected);
}

#[test]
fn a_job_without_policies_is_missing_what_nobody_would_notice() {
    let [guarantee, lock, detection, key, failure] = sheet(&job(), &NOBODY);
    let missing = |section: &Section| section.missing.iter().map(ToString::to_string).collect();
    let one = |section: &Section| -> String {
        <[String; 1]>::try_from(missing(section)).unwrap().concat()
    };
    let lines: Vec<String> = missing(&guarantee);
    assert_eq!(
        lines,
        [
            "No live worker of pool default offers the task charge: nothing runs. Start a worker with default in \
          WORKER_POOLS and charge in its catalogue."
        ]
    );
    assert!(
        one(&lock).starts_with("No lock, and overlap = \"allow\": two of its executions can run")
    );
    let lines: Vec<String> = missing(&detection);
    assert_eq!(
        lines,
        [
            "No deadline: nobody is notified if it does not run. Write expect_within = \"1h\", or another time, or \
             start_within.",
            "No destination: no route of the alerts file matches its labels and the severity medium, so nobody is \
             notified of its incidents. Write a [[route]] that matches it into the alerts file.",
        ]
    );
    assert_eq!(key.missing, []);
    assert!(one(&failure).starts_with("No verify task: "));
}

#[test]
fn a_complete_job_is_missing_nothing() {
    let minutes = |count| Some(Duration::from_mins(count));
    let mut job = JobSpec {
        overlap: Overlap::Queue,
        verify_task: Some("charge.verify".into()),
        lease: minutes(2),
        lock_key: Some(1302),
        on_locked: OnLocked::Wait,
        stale_after: minutes(90),
        idempotency_template: Some("charge:{execution_key}".into()),
        pause_after_failures: Some(3),
        expectations: Expectations {
            start_within: minutes(5),
            expect_within: minutes(60),
            max_runtime: minutes(40),
            alert_after: Some(2),
            recover_after: Some(2),
            remind_every: minutes(240),
            severity: Some(Severity::High),
        },
        ..job()
    };
    job.retry.max_retries = Some(0);
    job.retry.permanent = Some(vec!["exit_65".into(), "exit_66".into()]);
    let mut pager = route(&[Severity::High], &["ops", "mail"]);
    pager.escalation =
        Some(Escalation { after: Duration::from_mins(15), channels: vec!["pager".into()] });
    let workers = ["w1".to_owned(), "w2".to_owned()];
    let routes = [pager, route(&[Severity::Low], &["chat"])];
    let known = Circumstances { routes: &routes, workers: &workers, is_paused: false };
    let text = text(&job, &known);
    assert!(!text.contains("missing"), "{text}");
    for line in [
        "It fires at `0 2 * * *`.",
        "A firing waits until the earlier execution has ended; one that comes while another waits is skipped.",
        "Of firings missed while no scheduler ran, the newest runs, unless it is older than 1d; all are recorded.",
        "A firing that has not begun 1h30m after its nominal time is skipped.",
        "The task charge runs on w1 and w2.",
        "While its task runs, the worker holds the advisory lock 1302; the task is killed if the lock is lost.",
        "An execution whose lock is held elsewhere waits and tries again.",
        "An attempt is stopped after 1h (`timeout`).",
        "Late if its first attempt has not begun 5m after its nominal time.",
        "Missed if it has not succeeded 1h after its nominal time.",
        "Too long if an attempt runs for more than 40m; it goes on.",
        "2 executions in a row that fail for good or miss a limit open an incident of severity high; 2 successes resolve \
         it; a reminder comes every 4h until it is taken on.",
        "It is sent to mail and ops, and unless somebody takes it on to pager after 15m.",
        "Each execution has the key `charge:{execution_key}`, filled when it is made.",
        "A failed attempt is not retried.",
        "Errors of these classes are not retried: exit_65 and exit_66.",
        "The job is paused when 3 executions in a row have failed for good.",
        "Before a requeue the task charge.verify answers whether the effect has happened.",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("does not renew for 2m is lost, and another begins"), "{text}");
}

#[test]
fn what_the_job_leaves_open_is_named_as_such() {
    let mut job = job();
    job.retry.max_retries = Some(5);
    job.retry.delay = Some(Duration::from_secs(2));
    let text = text(&job, &NOBODY);
    for part in [
        "A failed attempt is retried 5 times, at first 2s later, then 2 times as long each time, up to 1h.",
        "It is not retried after 3 timeouts, or 3 crashes (its worker died, or memory ran out).",
        "The job leaves max_timeouts, max_crashes, multiplier, max_delay and permanent open",
        "does not renew for 20s, or its worker's LEASE_MS, is lost",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn other_schedules_locks_and_states_have_their_words() {
    let lock_row = RowLock {
        name: "tokenCleanup".into(),
        at_most: Duration::from_mins(5),
        at_least: Duration::from_secs(30),
    };
    let job = JobSpec { lock_row: Some(lock_row), schedule: Schedule::None, ..job() };
    let sheet = text(&job, &Circumstances { is_paused: true, ..NOBODY });
    for part in [
        "It has no schedule: it runs when it is triggered or enqueued.",
        "missing: It is paused, so no firing runs. Run `sexton jobs resume billing.charge`.",
        "holds the lock row \"tokenCleanup\", and at least for 30s; after its death the row stays locked for up to 5m.",
        "An execution whose lock is held elsewhere is skipped.",
    ] {
        assert!(sheet.contains(part), "{part}\n{sheet}");
    }
    assert!(!sheet.contains("firing makes at most one"), "{sheet}");
}

#[test]
fn the_json_of_a_section_holds_sentences() {
    let json = serde_json::to_value(&sheet(&job(), &NOBODY)[2]).unwrap();
    let mut keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["missing", "statements", "title"]);
    assert!(json["missing"][0].as_str().unwrap().starts_with("No deadline: "));
}
