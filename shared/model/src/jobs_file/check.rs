//! What can only be judged at a time: instants that are past, expressions that never fire.

use chrono::{DateTime, SecondsFormat, Utc};

use super::problem::{Problem, Report};
use crate::echo::quoted;
use crate::job::{JobSpec, Schedule};
use crate::plan::Timetable;

/// Checks jobs that are about to be applied at `now`.
///
/// To be asked about jobs that are new or whose schedule changes. A job that is applied again as it
/// stands is no problem, although its instant may have passed since.
pub fn check_against<'a>(
    specs: impl IntoIterator<Item = &'a JobSpec>,
    now: DateTime<Utc>,
) -> Vec<Problem> {
    let mut report = Report::new("", "");
    for spec in specs {
        if let Some((field, message)) = problem(spec, now) {
            report.add(None, Some(&spec.name), Some(field), message);
        }
    }
    report.finish()
}

/// The field and what is wrong with it.
pub(super) fn problem(spec: &JobSpec, now: DateTime<Utc>) -> Option<(&'static str, String)> {
    match &spec.schedule {
        Schedule::Cron { expression } => match Timetable::of(spec) {
            Err(error) => Some(("schedule", error.to_string())),
            Ok(timetable) if timetable.next_after(now).is_none() => {
                let message = "never fires: nothing matches within 100 years";
                Some(("schedule", format!("{} {message}", quoted(expression))))
            }
            Ok(_) => None,
        },
        Schedule::At { at } if *at <= now => {
            let [at, now] = [*at, now].map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
            Some(("at", format!("{at} is past; it is {now}")))
        }
        Schedule::Every { .. } => {
            Timetable::of(spec).err().map(|error| ("every", error.to_string()))
        }
        Schedule::At { .. } | Schedule::None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_would_never_fire_is_refused_when_it_is_applied() {
        let cron = |text: &str| Schedule::Cron { expression: text.to_owned() };
        let at = |text: &str| Schedule::At { at: text.parse().unwrap() };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let problems = |schedule| {
            let job = JobSpec::new("a.b", "t", schedule);
            check_against([&job], now).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for schedule in [
            cron("0 0 29 2 *"),
            at("2026-01-01T00:00:00.001Z"),
            Schedule::Every { period: Duration::from_secs(1) },
            Schedule::None,
        ] {
            assert_eq!(problems(schedule), [""; 0]);
        }
        for (schedule, problem) in [
            (
                cron("0 0 30 2 *"),
                "job \"a.b\": schedule: \"0 0 30 2 *\" never fires: nothing matches within 100 years",
            ),
            (
                at("2026-01-01T00:00:00Z"),
                "job \"a.b\": at: 2026-01-01T00:00:00Z is past; it is 2026-01-01T00:00:00Z",
            ),
        ] {
            assert_eq!(problems(schedule), [problem]);
        }
    }
}
