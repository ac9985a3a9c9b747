//! Reads the scheduler's environment: its settings, and the jobs in one of them.
//!
//! All problems of both are reported at once, so that a deployment need not be corrected one restart at a time.

use sexton_model::job::JobSpec;
use sexton_model::jobs_file::CRON_JOBS;
use sexton_service::settings::{SchedulerSettings, SettingsErrors};

use super::cron_jobs;

const PREFIX: &str = "SEXTON_SERVICE";

/// Reads settings and jobs.
///
/// # Errors
///
/// All problems.
pub fn read(
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<(SchedulerSettings, Vec<JobSpec>), SettingsErrors> {
    let variables: Vec<_> = variables.into_iter().collect();
    // The jobs can be checked even if the settings are invalid, so their variables are read directly.
    let value = |name: &str| {
        let named = variables.iter().find(|(known, value)| known == name && !value.is_empty());
        named.map(|(_, value)| value.clone())
    };
    let (json, mut prefix) = (value(CRON_JOBS), value(PREFIX));
    let settings = SchedulerSettings::from_env(variables);
    let is_bad = |name| {
        let problems = settings.as_ref().err().map(SettingsErrors::problems);
        problems.is_some_and(|problems| problems.iter().any(|problem| problem.name() == name))
    };
    if is_bad(CRON_JOBS) {
        return settings.map(|settings| (settings, Vec::new()));
    }
    if is_bad(PREFIX) {
        // The problem is already reported, and would be repeated for every name.
        prefix = None;
    }
    match (settings, cron_jobs::parse(json.as_deref(), prefix.as_deref())) {
        (Ok(settings), Ok(jobs)) => Ok((settings, jobs)),
        (Err(problems), Ok(_)) | (Ok(_), Err(problems)) => Err(problems),
        (Err(settings), Err(jobs)) => Err(settings.and(jobs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(variables: &[(&str, &str)]) -> String {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        read(variables).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn problems_of_settings_and_of_jobs_are_reported_together() {
        let text = problems(&[
            ("DATABASE_URL", "postgres://localhost/db"),
            ("AMQP_URL", "amqp://localhost"),
            ("RETENTION_DAYS", "none"),
            ("CRON_JOBS", r#"{"a b": {"schedule": "often"}, "c": {"schedule": "0 0 30 2 *"}}"#),
        ]);
        for expected in ["2 problems", "RETENTION_DAYS", "a b", "expected 5 fields", "never fires"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn an_invalid_prefix_is_reported_once() {
        let jobs = r#"{"cleanup": {"schedule": "* * * * *"}}"#;
        let text = problems(&[
            ("DATABASE_URL", "postgres://localhost/db"),
            ("AMQP_URL", "amqp://localhost"),
            (PREFIX, "not a prefix!"),
            ("CRON_JOBS", jobs),
        ]);
        assert!(text.starts_with("1 problem "), "{text}");
    }
}
