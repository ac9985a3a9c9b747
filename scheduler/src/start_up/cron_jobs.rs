//! Applies the jobs of the environment, `CRON_JOBS`, at every start.
//!
//! Applying the same jobs again changes nothing, so every replica does it. They are parsed before any
//! connection is made; problems stop the start, and all are reported at once.

use chrono::{DateTime, Utc};
use sexton_model::id::JobId;
use sexton_model::job::JobSpec;
use sexton_model::jobs_file::{CRON_JOBS, Problem, parse_cron_jobs};
use sexton_model::lint::DayMeanings;
use sexton_service::clock;
use sexton_service::settings::SettingsErrors;
use sexton_store::jobs::{Apply, ApplyError, apply};
use sexton_store::{Now, Store};
use uuid::Uuid;

/// Parses them. Each name becomes `<prefix>.<name>` if there is a prefix.
///
/// # Errors
///
/// All problems, described for the person who deploys.
pub fn parse(json: Option<&str>, prefix: Option<&str>) -> Result<Vec<JobSpec>, SettingsErrors> {
    let Some(json) = json else { return Ok(Vec::new()) };
    parse_cron_jobs(json, prefix)
        .map_err(|problems| SettingsErrors::one(CRON_JOBS, format_problems(&problems)))
}

/// The most jobs with two meanings that the log names.
const MAX_LOGGED_AMBIGUITIES: usize = 20;

/// Applies the jobs to the database. The audit names `actor`. Warns of jobs whose expression has two meanings.
///
/// # Errors
///
/// [`ApplyError`]; nothing was applied then.
pub async fn apply_all(
    store: &Store,
    specs: &[JobSpec],
    actor: &str,
    now: Now,
) -> Result<(), ApplyError> {
    if specs.is_empty() {
        return Ok(());
    }
    let request = Apply { specs, actor, dry_run: false, prune: false };
    let applied = apply(store, request, || JobId::new(Uuid::now_v7()), now).await?;
    tracing::info!(
        jobs.created = applied.created.len(),
        jobs.changed = applied.changed.len(),
        jobs.unchanged = applied.unchanged.len(),
        "applied the {} jobs of {CRON_JOBS}: {} new, {} changed",
        specs.len(),
        applied.created.len(),
        applied.changed.len()
    );
    log_ambiguous_days(specs, now.unwrap_or_else(clock::now));
    Ok(())
}

/// Logs the jobs whose two day fields both restrict the days and that do not say `days`, at every start.
fn log_ambiguous_days(specs: &[JobSpec], now: DateTime<Utc>) {
    let ambiguous = specs.iter().filter_map(|spec| Some((spec, DayMeanings::of_job(spec, now)?)));
    for (spec, meanings) in ambiguous.take(MAX_LOGGED_AMBIGUITIES) {
        tracing::warn!(
            job.name = spec.name,
            "{CRON_JOBS}: job {}: schedule: {}; write {} into its entry",
            spec.name,
            meanings.describe(spec.timezone),
            meanings.instead().replace("days = ", "\"days\": ")
        );
    }
}

/// Formats the problems, one per line, without the name that the headline already has.
pub(crate) fn format_problems(problems: &[Problem]) -> String {
    let prefix = format!("{CRON_JOBS}: ");
    problems
        .iter()
        .map(|problem| {
            let text = problem.to_string();
            text.strip_prefix(&prefix).map_or(text.clone(), str::to_owned)
        })
        .collect::<Vec<_>>()
        .join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_reported_at_once() {
        let json = r#"{"a b": {"schedule": "often"}, "c": {}}"#;
        let text = parse(Some(json), None).unwrap_err().to_string();
        for expected in ["a b", "expected 5 fields", "schedule: is missing"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn without_the_variable_there_are_no_jobs() {
        assert_eq!(parse(None, Some("billing")), Ok(Vec::new()));
    }
}
