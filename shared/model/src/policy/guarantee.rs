//! What is guaranteed, and the idempotency key.

use super::{Circumstances, Gap, Section, join};
use crate::duration;
use crate::job::{JobSpec, Misfire, MisfirePolicy, Overlap, Schedule};
use crate::zone::Zone;

/// Maximum number of workers that are named.
const MAX_NAMED: usize = 3;
/// The template of a job that has none.
const DEFAULT_TEMPLATE: &str = "{job}:{execution_key}";

pub(super) fn section(job: &JobSpec, known: &Circumstances<'_>) -> Section {
    let mut statements = vec![schedule(job)];
    if job.schedule != Schedule::None {
        statements.push(
            "Each firing makes at most one execution, with any number of schedulers; none is lost."
                .to_owned(),
        );
        statements.push(overlap(job.overlap).to_owned());
        statements.push(misfire(&job.misfire));
    }
    statements.extend(job.stale_after.map(|time| {
        let time = duration::format(time);
        format!("A firing that has not begun {time} after its nominal time is skipped.")
    }));
    let mut missing = Vec::new();
    if known.is_paused {
        let resume = format!("`sexton jobs resume {}`", job.name);
        missing.push(Gap::new("it is paused, so no firing runs", "Run", resume));
    }
    let (task, pool) = (&job.task_type, &job.pool);
    if known.workers.is_empty() {
        let what = format!("no live worker of pool {pool} offers the task {task}: nothing runs");
        let object = format!("a worker with {pool} in WORKER_POOLS and {task} in its catalogue");
        missing.push(Gap::new(what, "Start", object));
    } else {
        statements.push(format!("The task {task} runs on {}.", workers(known.workers)));
    }
    Section { title: "Guarantee", statements, missing }
}

fn schedule(job: &JobSpec) -> String {
    let zone = match job.timezone {
        Zone::UTC => String::new(),
        zone => format!(" in {}", zone.name()),
    };
    match &job.schedule {
        Schedule::Cron { expression } => format!("It fires at `{expression}`{zone}."),
        Schedule::Every { period, .. } => format!("It fires every {}.", duration::format(*period)),
        Schedule::At { at } => format!("It fires once, at {at}{zone}."),
        Schedule::None => "It has no schedule: it runs when it is triggered or enqueued.".into(),
    }
}

const fn overlap(policy: Overlap) -> &'static str {
    match policy {
        Overlap::Allow => "A firing runs beside earlier executions that have not ended.",
        Overlap::Skip => "A firing is skipped while an earlier execution has not ended.",
        Overlap::Queue => {
            "A firing waits until the earlier execution has ended; one that comes while another waits is skipped."
        }
        Overlap::Replace => "A firing cancels an earlier execution that has not ended.",
    }
}

fn misfire(misfire: &Misfire) -> String {
    let late = "Of firings missed while no scheduler ran,";
    let window = duration::format(misfire.window);
    match misfire.policy {
        MisfirePolicy::Skip => format!("{late} none runs; each is recorded."),
        MisfirePolicy::FireOnce => {
            format!("{late} the newest runs, unless it is older than {window}; all are recorded.")
        }
        MisfirePolicy::FireAll => {
            let limit = misfire.limit;
            let rate = misfire.rate.map_or_else(String::new, |rate| format!(", at {rate}"));
            format!(
                "{late} those of the last {window} run, the newest {limit} at most{rate}; all are recorded."
            )
        }
    }
}

fn workers(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
    match names.len() - shown.len() {
        0 => join(&shown),
        more => format!("{} and {more} more workers", shown.join(", ")),
    }
}

pub(super) fn key_section(job: &JobSpec) -> Section {
    let template = job.idempotency_template.as_deref().unwrap_or(DEFAULT_TEMPLATE);
    let statements = vec![
        format!("Each execution has the key `{template}`, filled when it is made."),
        "Its retries and requeues have the same key, which the task gets as SEXTON_IDEMPOTENCY_KEY."
            .to_owned(),
        "The task runs at least once, and effectively once if it honours the key. Sexton cannot see whether it does."
            .to_owned(),
    ];
    Section { title: "Idempotency key", statements, missing: Vec::new() }
}
