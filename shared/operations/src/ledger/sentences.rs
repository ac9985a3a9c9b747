//! Dispositions in sentences. Texts of people or tasks are quoted as they are; the code that shows a sentence on a
//! terminal escapes it.

use chrono::{DateTime, Utc};
use sexton_model::explain::{Disposition, NotAFiring, UnknownReason};
use sexton_model::state::State;
use sexton_store::gaps::Gap;
use sexton_store::ledger::{FiringExecution, LedgerPage};

use crate::text::instant;

/// Describes an execution by the disposition that it gives to its firing; `None` for other dispositions.
pub(super) fn describe_execution(
    found: &Disposition,
    execution: Option<&FiringExecution>,
) -> Option<String> {
    let late = execution.and_then(describe_backfill).unwrap_or_default();
    let ended = || {
        let at = execution.and_then(|execution| execution.finished_at);
        at.map_or_else(String::new, |at| format!(" at {}", instant(at)))
    };
    Some(match found {
        Disposition::Ran => format!("it ran, and succeeded{}{late}", ended()),
        Disposition::Running(State::Running) => format!("it is running{late}"),
        Disposition::Running(State::Retrying) => {
            format!("an attempt failed{}, the next one waits{late}", describe_error(execution))
        }
        Disposition::Running(_) => format!("it is claimed, and waits to be run{late}"),
        Disposition::Queued => {
            format!("it waits until no other execution of the job is under way{late}")
        }
        Disposition::Failed => format!(
            "it failed{}{}, and waits for an operator{late}",
            ended(),
            describe_error(execution)
        ),
        Disposition::Discarded => {
            format!("it failed{}, and an operator gave it up{late}", describe_error(execution))
        }
        Disposition::Cancelled => {
            let by = execution.and_then(|execution| execution.replaced_by);
            let why = by.map_or_else(String::new, |by| {
                format!(", as a newer firing took its place (execution {by})")
            });
            format!("it was cancelled{}{why}{late}", ended())
        }
        Disposition::Skipped(why) => describe_skip(why),
        _ => return None,
    })
}

/// Describes a firing.
pub(super) fn describe_firing(
    found: &Disposition,
    at: DateTime<Utc>,
    execution: Option<&FiringExecution>,
    actor: Option<&str>,
    reason: Option<&str>,
    page: &LedgerPage,
) -> String {
    let by = || format!("{}{}", by_actor(actor), with_reason(reason));
    match found {
        Disposition::Ran
        | Disposition::Running(_)
        | Disposition::Queued
        | Disposition::Failed
        | Disposition::Discarded
        | Disposition::Cancelled
        | Disposition::Skipped(_) => describe_execution(found, execution).unwrap_or_default(),
        Disposition::Coalesced(Some(key)) => {
            format!("it was noticed late, and {key} ran for it and others")
        }
        Disposition::Coalesced(None) => {
            "it was noticed late, and a newer firing was to run for it and others".to_owned()
        }
        Disposition::Paused(_) => format!("the job was paused{}", by()),
        Disposition::NotRun(word) => describe_not_run(word, &by()),
        Disposition::Held(why) => format!("it is late, and held until somebody releases it: {why}"),
        Disposition::Due => "it is due, and no scheduler has claimed it yet".to_owned(),
        Disposition::NotYet if page.job.paused.is_some() => {
            format!("it would be due at {}, but the job is paused{}", instant(at), by())
        }
        Disposition::NotYet => format!("it is due at {}", instant(at)),
        Disposition::Ended => "the job had fired for the last time before".to_owned(),
        Disposition::Unknown(UnknownReason::Pruned) => {
            let before = page.job.pruned_before.map_or_else(String::new, |at| {
                format!(": what had ended before {} may be gone", instant(at))
            });
            format!("it is older than what retention keeps{before}")
        }
        Disposition::Unknown(UnknownReason::Unaccounted) => {
            "nothing is on record of it, and something should be: rows were removed, or a backup was \
             restored"
                .to_owned()
        }
    }
}

/// Describes why the firings of a gap did not run.
pub fn describe_gap(gap: &Gap) -> String {
    // A gap whose firings were not all counted says so in its reason.
    let reason = gap.reason.strip_suffix(", at least").unwrap_or(&gap.reason);
    let by = || format!("{}{}", by_actor(gap.actor.as_deref()), with_reason(gap.why.as_deref()));
    match (reason, gap.into_key.as_deref()) {
        ("coalesced", Some(key)) => format!("it was noticed late, and {key} ran for it and others"),
        ("coalesced", None) => {
            "it was noticed late, and a newer firing was to run for it".to_owned()
        }
        ("paused", _) => format!("the job was paused{}", by()),
        ("held", _) => {
            format!("it was held, as the database's clock had jumped, and given up{}", by())
        }
        (other, _) => describe_not_run(other, &by()),
    }
}

/// Describes an instant that is no firing.
pub(super) fn describe_no_firing(what: NotAFiring, page: &LedgerPage) -> String {
    let oldest = page.history.oldest().map(|revision| instant(revision.from)).unwrap_or_default();
    match what {
        NotAFiring::Between => {
            "the schedule that the job had then has no firing at this instant".into()
        }
        NotAFiring::BeforeJob => format!("the job was made later, at {oldest}"),
        NotAFiring::BeforeRecords => {
            format!(
                "the job was changed at {oldest}, and its schedule before that is not known any more"
            )
        }
        NotAFiring::AfterDeletion => {
            let at = page.history.until().map(instant).unwrap_or_default();
            format!("the job was deleted before, at {at}")
        }
    }
}

fn by_actor(actor: Option<&str>) -> String {
    actor.map_or_else(String::new, |actor| format!(" by {actor}"))
}

fn with_reason(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

fn describe_backfill(execution: &FiringExecution) -> Option<String> {
    let backfill = execution.backfill.as_ref()?;
    Some(format!(
        " (backfilled{}{})",
        by_actor(backfill.actor.as_deref()),
        with_reason(backfill.why.as_deref())
    ))
}

fn describe_error(execution: Option<&FiringExecution>) -> String {
    let Some(execution) = execution else { return String::new() };
    match (&execution.error_class, &execution.error_message) {
        (Some(class), Some(message)) => format!(" ({class}: {message})"),
        (Some(text), None) | (None, Some(text)) => format!(" ({text})"),
        (None, None) => String::new(),
    }
}

fn describe_skip(why: &str) -> String {
    match why {
        "overlap" => "it was skipped: an earlier execution of the job was under way".to_owned(),
        "stale" => {
            "it was skipped: it would have been begun later than stale_after allows".to_owned()
        }
        "upstream" => {
            "it was skipped: the members before it in its flow ended otherwise than it waits for"
                .to_owned()
        }
        "replaced" => {
            "it was skipped: a newer firing, claimed at the same time, took its place".to_owned()
        }
        other => format!("it was skipped: {other}"),
    }
}

fn describe_not_run(word: &str, by: &str) -> String {
    match word {
        "outside_window" => "it was noticed later than the misfire window allows".to_owned(),
        "misfire_skip" => "it was noticed late, and the misfire policy is to skip those".to_owned(),
        "over_limit" => {
            "it was noticed late, and newer ones used up the limit of the catch-up".to_owned()
        }
        "rescheduled" => {
            format!("it was due and not claimed yet when the schedule was changed{by}")
        }
        "excluded" => "it is on a day on which the job does not fire".to_owned(),
        "past_end" => "as many firings as may run had been claimed before".to_owned(),
        "deleted" => format!("it was due and not claimed yet when the job was deleted{by}"),
        other => format!("it did not run: {other}{by}"),
    }
}
