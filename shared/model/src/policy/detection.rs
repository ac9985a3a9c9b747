//! Who notices that it did not run.

use std::time::Duration;

use super::{Circumstances, Gap, Section, count, join};
use crate::duration;
use crate::job::JobSpec;
use crate::routing::{Destination, Route, destinations};

/// Returns the gap of a job that nobody misses if it does not run: it limits neither its begin nor its success.
pub fn no_deadline(job: &JobSpec) -> Option<Gap> {
    let limits = &job.expectations;
    (limits.expect_within.is_none() && limits.start_within.is_none()).then(|| {
        let what = "no deadline: nobody is notified if it does not run";
        Gap::new(what, "Write", "expect_within = \"1h\", or another time, or start_within")
    })
}

/// Returns the gap of a job whose incidents reach no channel by these routes.
pub fn no_destination(job: &JobSpec, routes: &[Route]) -> Option<Gap> {
    let severity = severity(job);
    destinations_of(job, routes).is_empty().then(|| {
        let what = format!(
            "no destination: no route of the alerts file matches its labels and the severity {severity}, so nobody is \
             notified of its incidents"
        );
        Gap::new(what, "Write", "a [[route]] that matches it into the alerts file")
    })
}

fn severity(job: &JobSpec) -> &'static str {
    job.expectations.severity.unwrap_or_default().as_str()
}

fn destinations_of(job: &JobSpec, routes: &[Route]) -> Vec<Destination> {
    destinations(routes, &job.labels, job.expectations.severity.unwrap_or_default())
}

pub(super) fn section(job: &JobSpec, known: &Circumstances<'_>) -> Section {
    let limits = &job.expectations;
    let mut statements = Vec::new();
    let mut limit = |time: Option<Duration>, sentence: &dyn Fn(String) -> String| {
        statements.extend(time.map(|time| sentence(duration::format(time))));
    };
    limit(limits.start_within, &|time| {
        format!("Late if its first attempt has not begun {time} after its nominal time.")
    });
    limit(limits.expect_within, &|time| {
        format!("Missed if it has not succeeded {time} after its nominal time.")
    });
    limit(limits.max_runtime, &|time| {
        format!("Too long if an attempt runs for more than {time}; it goes on.")
    });
    statements.push(alerts(job));
    let reached = destinations_of(job, known.routes);
    if !reached.is_empty() {
        statements.push(destinations_sentence(&reached));
    }
    if limits.max_runtime.is_none() {
        let timeout = duration::format(job.timeout);
        statements.push(format!(
            "Without max_runtime, a run that takes long is noticed at its timeout of {timeout}."
        ));
    }
    let missing = no_deadline(job).into_iter().chain(no_destination(job, known.routes));
    Section { title: "Missed-run detection", statements, missing: missing.collect() }
}

fn alerts(job: &JobSpec) -> String {
    let limits = &job.expectations;
    let after = match limits.alert_after.unwrap_or(1) {
        1 => "The first execution that fails for good or misses a limit opens".to_owned(),
        more => format!("{more} executions in a row that fail for good or miss a limit open"),
    };
    let recover = count(limits.recover_after.unwrap_or(1), "success resolves", "successes resolve");
    let remind = limits.remind_every.map_or_else(
        || "nobody is reminded of it".to_owned(),
        |time| format!("a reminder comes every {} until it is taken on", duration::format(time)),
    );
    format!("{after} an incident of severity {}; {recover} it; {remind}.", severity(job))
}

fn destinations_sentence(reached: &[Destination]) -> String {
    let at_once: Vec<&str> =
        reached.iter().filter(|one| one.after.is_zero()).map(|one| one.channel.as_str()).collect();
    let later: Vec<String> = (reached.iter().filter(|one| !one.after.is_zero()))
        .map(|one| format!("{} after {}", one.channel, duration::format(one.after)))
        .collect();
    let later: Vec<&str> = later.iter().map(String::as_str).collect();
    let at_once = join(&at_once);
    if later.is_empty() {
        return format!("It is sent to {at_once}.");
    }
    format!("It is sent to {at_once}, and unless somebody takes it on to {}.", join(&later))
}
