//! What a monitor says about a job, in words.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

use super::{MonitoredExecution, MonitoredGap};
use crate::duration;
use crate::plan::GapReason;
use crate::state::State;

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

pub(super) fn deleted() -> String {
    "the job was deleted".to_owned()
}

pub(super) fn recovered(successes: usize) -> String {
    match successes {
        1 => "it has succeeded since".to_owned(),
        number => format!("it has succeeded {number} times since"),
    }
}

pub(super) fn failed(execution: &MonitoredExecution) -> String {
    let nominal = instant(execution.nominal);
    let error = error(execution).unwrap_or_else(|| "no error was recorded".to_owned());
    format!("the execution of {nominal} has failed for good and waits in the failed queue: {error}")
}

pub(super) fn skipped(execution: &MonitoredExecution) -> String {
    let reason = execution.message.as_deref().unwrap_or("it was skipped");
    let reason =
        if execution.is_stale { "its stale_after was over before it began" } else { reason };
    format!("the firing of {} will not run: {reason}", instant(execution.nominal))
}

pub(super) fn late(execution: &MonitoredExecution, limit: Duration) -> String {
    let (nominal, limit) = (instant(execution.nominal), duration::format(limit));
    format!("the firing of {nominal} has not begun within {limit}: {}", progress(execution))
}

pub(super) fn missed(execution: &MonitoredExecution, limit: Duration) -> String {
    let (nominal, limit) = (instant(execution.nominal), duration::format(limit));
    format!("the firing of {nominal} has not succeeded within {limit}: {}", progress(execution))
}

pub(super) fn too_long(execution: &MonitoredExecution, limit: Duration) -> String {
    let (nominal, limit) = (instant(execution.nominal), duration::format(limit));
    let attempt = execution.attempt;
    format!("attempt {attempt} of the execution of {nominal} runs longer than {limit}, and goes on")
}

pub(super) fn gap(gap: &MonitoredGap) -> String {
    let firings = match gap.count {
        1 => format!("the firing of {} did not run", instant(gap.first)),
        count => {
            let (first, last) = (instant(gap.first), instant(gap.last));
            format!("{count} firings from {first} to {last} did not run")
        }
    };
    let reason = match gap.reason {
        Some(GapReason::OutsideWindow) => "no scheduler claimed them within misfire.window",
        Some(GapReason::MisfireSkip) => {
            "no scheduler claimed them in time, and misfire.policy is skip"
        }
        Some(GapReason::OverLimit) => {
            "no scheduler claimed them in time, and newer ones used up misfire.limit"
        }
        _ => "see the ledger",
    };
    format!("{firings}: {reason}")
}

pub(super) fn unclaimed(nominal: DateTime<Utc>) -> String {
    let nominal = instant(nominal);
    format!("the firing of {nominal} is due, and no scheduler claims it: see `sexton doctor`")
}

pub(super) fn never_fires() -> String {
    "it has never run, and its schedule has no firing ahead: `sexton jobs next` shows what it computes"
        .to_owned()
}

/// How far an execution is.
fn progress(execution: &MonitoredExecution) -> String {
    let attempt = execution.attempt;
    let last =
        || error(execution).map(|error| format!("; the last error: {error}")).unwrap_or_default();
    match (execution.state, execution.started_at) {
        (State::Running, Some(started)) => {
            format!("attempt {attempt} runs since {}{}", instant(started), last())
        }
        (State::Retrying, _) => format!("attempt {attempt} is next{}", last()),
        _ if execution.waits_for_job => "it waits for an earlier execution of the job".to_owned(),
        _ if !execution.is_published => "its ticket is not published yet".to_owned(),
        _ => "it waits in the queue, and no worker has taken it".to_owned(),
    }
}

fn error(execution: &MonitoredExecution) -> Option<String> {
    let message = execution.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
    match (execution.error_class.as_deref(), message) {
        (Some(class), Some(message)) => Some(format!("{class}: {message}")),
        (Some(class), None) => Some(class.to_owned()),
        (None, Some(message)) => Some(message.to_owned()),
        (None, None) => None,
    }
}
