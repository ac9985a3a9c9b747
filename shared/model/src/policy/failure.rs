//! Where a failed execution ends.

use super::{Gap, Section, count, join};
use crate::duration;
use crate::job::{JobSpec, RetryOverrides};
use crate::retry::RetryPolicy;

pub(super) fn section(job: &JobSpec) -> Section {
    let policy = RetryPolicy::default().with(&job.retry);
    let mut statements = vec![retries(&policy)];
    statements.push(format!(
        "It is not retried after {}, or {} (its worker died, or memory ran out).",
        count(policy.max_timeouts, "timeout", "timeouts"),
        count(policy.max_crashes, "crash", "crashes")
    ));
    if !policy.permanent.is_empty() {
        let classes: Vec<&str> = policy.permanent.iter().map(String::as_str).collect();
        statements.push(format!("Errors of these classes are not retried: {}.", join(&classes)));
    }
    let open = unset(&job.retry);
    if !open.is_empty() {
        statements.push(format!(
            "The job leaves {} open: these are the defaults, which its worker's catalogue or settings may change.",
            join(&open)
        ));
    }
    let name = &job.name;
    statements.push(format!(
        "Then it waits in the failed queue (`sexton failed list --job {name}`) until somebody decides; no retention removes \
         it before."
    ));
    statements.push(format!(
        "Run it again: `sexton failed requeue --job {name} --reason …`. Give it up: `sexton failed discard --job {name} \
         --reason …`."
    ));
    statements.extend(job.pause_after_failures.map(|limit| {
        let failures = count(limit, "execution has", "executions in a row have");
        format!("The job is paused when {failures} failed for good.")
    }));
    let mut missing = Vec::new();
    match &job.verify_task {
        Some(task) => statements.push(format!(
            "Before a requeue the task {task} answers whether the effect has happened."
        )),
        None => missing.push(Gap::new(
            "no verify task: before a requeue somebody has to find out whether the effect has happened",
            "Write",
            "verify = \"…\", a task type that answers it",
        )),
    }
    Section { title: "Failure and dead letter", statements, missing }
}

fn retries(policy: &RetryPolicy) -> String {
    if policy.max_retries == 0 {
        return "A failed attempt is not retried.".to_owned();
    }
    let times = count(policy.max_retries, "time", "times");
    let delay = duration::format(policy.delay);
    if policy.max_retries == 1 || policy.multiplier <= 1.0 {
        return format!("A failed attempt is retried {times}, {delay} later.");
    }
    format!(
        "A failed attempt is retried {times}, at first {delay} later, then {} times as long each time, up to {}.",
        policy.multiplier,
        duration::format(policy.max_delay.max(policy.delay))
    )
}

/// The fields whose value somebody else may set.
fn unset(retry: &RetryOverrides) -> Vec<&'static str> {
    let fields = [
        ("max_retries", retry.max_retries.is_none()),
        ("max_timeouts", retry.max_timeouts.is_none()),
        ("max_crashes", retry.max_crashes.is_none()),
        ("delay", retry.delay.is_none()),
        ("multiplier", retry.multiplier.is_none()),
        ("max_delay", retry.max_delay.is_none()),
        ("permanent", retry.permanent.is_none()),
    ];
    fields.into_iter().filter(|(_, is_unset)| *is_unset).map(|(name, _)| name).collect()
}
