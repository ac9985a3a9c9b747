//! Checks that depend on the time: instants that are past, expressions that never fire.

use chrono::{DateTime, SecondsFormat, Utc};

use super::problem::{Problem, Report};
use crate::duration;
use crate::job::{JobSpec, PastPolicy, Schedule, ScheduleConstraints};
use crate::plan::{Timetable, TimetableError};
use crate::quoting::quoted;

/// Checks jobs before an apply at `now`.
///
/// For jobs that are new or whose schedule changes. An unchanged job is no problem, although its instant may have
/// passed since.
pub fn check_against<'a>(
    specs: impl IntoIterator<Item = &'a JobSpec>,
    now: DateTime<Utc>,
) -> Vec<Problem> {
    all(specs.into_iter().map(|spec| (spec, problem(spec, now))))
}

/// Like [`check_against`], for a caller that has parsed the timetables already, which is most of the work.
pub fn check_with_timetables<'a>(
    specs: impl IntoIterator<Item = (&'a JobSpec, &'a Result<Timetable, TimetableError>)>,
    now: DateTime<Utc>,
) -> Vec<Problem> {
    let specs = specs.into_iter();
    all(specs.map(|(spec, timetable)| (spec, problem_of(spec, timetable, now))))
}

type FieldProblem = Option<(&'static str, String)>;

fn all<'a>(specs: impl Iterator<Item = (&'a JobSpec, FieldProblem)>) -> Vec<Problem> {
    let mut report = Report::new("", "");
    for (spec, wrong) in specs {
        if let Some((field, message)) = wrong {
            report.add(None, Some(&spec.name), Some(field), message);
        }
    }
    report.finish()
}

/// Returns the wrong field and the problem.
pub(super) fn problem(spec: &JobSpec, now: DateTime<Utc>) -> FieldProblem {
    problem_of(spec, &Timetable::of(spec), now)
}

fn problem_of(
    spec: &JobSpec,
    timetable: &Result<Timetable, TimetableError>,
    now: DateTime<Utc>,
) -> FieldProblem {
    let field = match &spec.schedule {
        Schedule::None => return None,
        Schedule::At { at } => return past(spec, at.instant(spec.timezone), now),
        Schedule::Cron { .. } => "schedule",
        Schedule::Every { .. } => "every",
    };
    let timetable = match timetable {
        Ok(timetable) => timetable,
        Err(error) => return Some((field, error.to_string())),
    };
    if timetable.next_after(now).is_some() {
        return None;
    }
    if let Some(end) = spec.constraints.end
        && end.instant(spec.timezone) <= now
    {
        return Some(("end", format!("{end} is past; it is {}", format_instant(now))));
    }
    let (_, expression) = spec.schedule.to_columns();
    let expression = quoted(expression.as_deref().unwrap_or_default());
    // Checks whether there is a firing without the limits.
    let bare = JobSpec { constraints: ScheduleConstraints::default(), ..spec.clone() };
    let by_itself = Timetable::of(&bare).ok().and_then(|bare| bare.next_after(now));
    Some(match by_itself {
        None => (field, format!("{expression} never fires: nothing matches within 100 years")),
        Some(_) if spec.constraints.end.is_some() => {
            let message = "never fires: there is no firing up to then that is not excluded";
            ("end", format!("{expression} {message}"))
        }
        Some(_) => ("exclude", format!("{expression} never fires on another day")),
    })
}

/// Returns the problem of an instant that is past, unless the job accepts that.
fn past(spec: &JobSpec, at: DateTime<Utc>, now: DateTime<Utc>) -> Option<(&'static str, String)> {
    if at > now {
        return None;
    }
    let Schedule::At { at: written } = &spec.schedule else { return None };
    if spec.past == PastPolicy::Refuse {
        let ask = "write past = \"run\" if it is to run at once";
        return Some(("at", format!("{written} is past; it is {}; {ask}", format_instant(now))));
    }
    let late = (now - at).to_std().unwrap_or_default();
    spec.stale_after.filter(|stale| *stale <= late).map(|stale| {
        let stale = duration::format(stale);
        let message = format!("after {stale} {written} is stale by now, and would be skipped");
        ("stale_after", message)
    })
}

fn format_instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::Exclusions;
    use crate::moment::Moment;
    use crate::zone::Zone;

    #[test]
    fn what_would_never_fire_is_refused_when_it_is_applied() {
        let cron = |text: &str| Schedule::Cron { expression: text.to_owned() };
        let at = |text: &str| Schedule::At { at: Moment::parse(text).unwrap() };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let problems = |schedule| {
            let job = JobSpec::new("a.b", "t", schedule);
            check_against([&job], now).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for schedule in [
            cron("0 0 29 2 *"),
            at("2026-01-01T00:00:00.001Z"),
            Schedule::every(Duration::from_secs(1)),
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
                "job \"a.b\": at: 2026-01-01T00:00:00Z is past; it is 2026-01-01T00:00:00Z; write past = \"run\" if it is to run at once",
            ),
        ] {
            assert_eq!(problems(schedule), [problem]);
        }
    }
    #[test]
    fn terms_that_leave_no_firing_are_refused_by_the_field_that_leaves_none() {
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        let moment = |text: &str| Some(Moment::parse(text).unwrap());
        let days = |text: &str| Exclusions::from_texts(&[text]).unwrap();
        let daily = || Schedule::Cron { expression: "0 8 * * *".into() };
        let none = ScheduleConstraints::default;
        for (schedule, constraints, problem) in [
            (daily(), ScheduleConstraints { end: moment("2026-06-01T08:00:00"), ..none() }, ""),
            (
                daily(),
                ScheduleConstraints { end: moment("2026-05-31T07:00:00"), ..none() },
                "end: 2026-05-31T07:00:00 is past; it is 2026-06-01T00:00:00Z",
            ),
            (
                daily(),
                ScheduleConstraints { end: moment("2026-06-01T05:00:00"), ..none() },
                "end: \"0 8 * * *\" never fires: there is no firing up to then",
            ),
            (
                daily(),
                ScheduleConstraints { exclude: days("2026-01-01..9999-12-31"), ..none() },
                "exclude: \"0 8 * * *\" never fires on another day",
            ),
            (
                Schedule::every(Duration::from_hours(24 * 30)),
                ScheduleConstraints {
                    start: moment("2026-06-02T00:00:00"),
                    end: moment("2026-06-03T00:00:00"),
                    ..none()
                },
                "end: \"30d\" never fires",
            ),
            (daily(), ScheduleConstraints { start: moment("2036-06-02T00:00:00"), ..none() }, ""),
        ] {
            let timezone = Zone::parse("Europe/Vienna").unwrap();
            let job = JobSpec { constraints, timezone, ..JobSpec::new("a.b", "t", schedule) };
            let found = check_against([&job], now);
            let found = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            let expected = if problem.is_empty() { "" } else { "job \"a.b\": " };
            assert!(found.starts_with(&format!("{expected}{problem}")), "{problem}: {found}");
            assert_eq!(found.is_empty(), problem.is_empty(), "{found}");
        }
    }

    #[test]
    fn an_instant_that_is_past_runs_only_if_that_is_asked() {
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        let at = Moment::parse("2026-06-01T01:00:00").unwrap();
        let timezone = Zone::parse("Europe/Vienna").unwrap();
        let job = JobSpec { timezone, ..JobSpec::new("a.b", "t", Schedule::At { at }) };
        let (field, message) = problem(&job, now).unwrap();
        assert_eq!(field, "at");
        assert!(message.starts_with("2026-06-01T01:00:00 is past; it is 2026-06-01T00:00:00Z"));
        let run_past = JobSpec { past: PastPolicy::Run, ..job };
        assert_eq!(problem(&run_past, now), None);
        let stale = JobSpec { stale_after: Some(Duration::from_hours(1)), ..run_past };
        assert_eq!(problem(&stale, now).unwrap().0, "stale_after");
        let timely = JobSpec { stale_after: Some(Duration::from_mins(61)), ..stale };
        assert_eq!(problem(&timely, now), None);
    }
}
