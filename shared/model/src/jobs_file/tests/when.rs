//! When a job fires: kinds, zones of instants, and limits.

use super::*;

#[test]
fn an_instant_without_an_offset_is_one_of_the_zone() {
    let job = one("at = \"2025-12-15T15:00:00\"\ntimezone = \"Europe/Vienna\"");
    let at = Moment::parse("2025-12-15T15:00:00").unwrap();
    assert_eq!((job.schedule, job.past), (Schedule::At { at }, PastPolicy::Refuse));
    let job = one("at = \"2025-12-15T15:00:00Z\"\npast = \"run\"");
    assert_eq!(job.past, PastPolicy::Run);
    // In UTC both notations are equal.
    assert_eq!(one("at = 2025-12-15T15:00:00").schedule, job.schedule);
}

#[test]
fn terms_are_read_in_the_zone_of_the_job() {
    let job = one("every = \"1h\"\nstart = 2026-01-01T00:00:00\njitter = \"90s\"\nmax_runs = 3");
    let start = Some(Moment::parse("2026-01-01T00:00:00Z").unwrap());
    let jitter = Some(Duration::from_secs(90));
    assert_eq!(
        job.constraints,
        ScheduleConstraints { start, jitter, max_runs: Some(3), ..ScheduleConstraints::default() }
    );
    let job = one("every = \"1h\"\nexclude = [\"2026-12-25\"]\ntimezone = \"Europe/Vienna\"");
    assert_eq!(job.constraints.exclude.to_texts(), ["2026-12-25"]);
    assert_eq!(job.timezone.name(), "Europe/Vienna");
}

#[test]
fn what_makes_no_sense_together_is_refused_in_words_that_say_what_to_write() {
    let cron = "schedule = \"@daily\"\n";
    let vienna = "timezone = \"Europe/Vienna\"\n";
    for (before, line, problem) in [
        ("", "phase = \"5m\"", "phase: has a meaning only with every"),
        ("every = \"15m\"\n", "phase = \"15m\"", "phase: 15m is not less than every = 15m"),
        ("every = \"15m\"\n", "phase = \"-5m\"", "phase: \"-5m\" is not a duration"),
        ("", "past = \"run\"", "past: has a meaning only with at"),
        (
            "at = \"2026-01-01T00:00:00Z\"\n",
            "past = \"skip\"",
            "past: \"skip\" is not known; write one of refuse, run",
        ),
        (
            "timezone = \"Europe/Vienna\"\n",
            "at = \"2026-10-25T02:30:00\"",
            "at: 2026-10-25T02:30:00 is there twice in Europe/Vienna, where the clocks are set back: \
             write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
        ),
        (
            "timezone = \"Europe/Vienna\"\n",
            "at = \"2026-03-29T02:30:00\"",
            "at: 2026-03-29T02:30:00 is not there in Europe/Vienna, where the clocks are set forward \
             over it: write 2026-03-29T01:30:00+01:00 or 2026-03-29T03:30:00+02:00",
        ),
        (
            &format!("{cron}{vienna}"),
            "start = \"2026-10-25T02:30:00\"",
            "start: 2026-10-25T02:30:00 is there twice in Europe/Vienna",
        ),
        (
            &format!("{cron}start = \"2026-06-02T00:00:00Z\"\n"),
            "end = \"2026-06-01T00:00:00\"",
            "end: 2026-06-01T00:00:00Z is before start = 2026-06-02T00:00:00Z",
        ),
        (
            // In the zone's wall time the order is reversed.
            &format!("{cron}{vienna}start = \"2026-06-01T11:00:00Z\"\n"),
            "end = \"2026-06-01T12:00:00\"",
            "end: 2026-06-01T12:00:00 is before start = 2026-06-01T11:00:00Z",
        ),
        (
            "",
            "start = \"2026-06-02T00:00:00Z\"",
            "start: has a meaning only with schedule or every",
        ),
        (
            "at = \"2026-01-01T00:00:00Z\"\n",
            "max_runs = 2",
            "max_runs: has a meaning only with schedule or every",
        ),
        ("", "jitter = \"5s\"", "jitter: has a meaning only with schedule, every or at"),
        (cron, "jitter = \"2d\"", "jitter: 2d is not between 1s and 1d"),
        (cron, "max_runs = 0", "max_runs: 0 is not between 1 and 100000"),
        (
            cron,
            "start = \"2026-02-30T00:00:00\"",
            "start: \"2026-02-30T00:00:00\" is not an instant",
        ),
        (
            cron,
            "exclude = \"2026-12-25\"",
            "exclude: must be a list such as [\"2026-12-25\"], not text",
        ),
        (cron, "exclude = [\"2026-02-30\"]", "exclude: \"2026-02-30\" is not a date"),
        (cron, "exclude = [5]", "exclude: a day must be text in quotes, not a whole number"),
        (
            cron,
            "exclude = [\"2026-12-26..2026-12-24\"]",
            "exclude: \"2026-12-26..2026-12-24\" runs backwards; write the earlier date first",
        ),
        (
            "every = \"1h\"\n",
            "timezone = \"Europe/Vienna\"",
            "timezone: has a meaning only with schedule, with exclude",
        ),
        (
            "at = \"2026-01-01T00:00:00Z\"\n",
            "timezone = \"Europe/Vienna\"",
            "timezone: has a meaning only with schedule, with exclude",
        ),
        (
            "every = \"1d\"\n",
            "misfire = { window = \"6h\" }",
            "misfire.window: 6h is shorter than every = 1d",
        ),
        (
            &format!("{cron}jitter = \"10m\"\n"),
            "stale_after = \"10m\"",
            "stale_after: 10m is not longer than jitter = 10m",
        ),
    ] {
        let found = refused(&format!("{before}{line}"));
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        let number = 4 + before.matches('\n').count();
        let place = format!("jobs.toml:{number}: job \"a.b\": {problem}");
        assert!(found[0].starts_with(&place), "{place}\n{found:?}");
    }
}

#[test]
fn a_short_window_is_no_problem_where_it_leaves_nothing_undecided() {
    one("every = \"1d\"\nmisfire = { window = \"1d\" }");
    one("every = \"1d\"\nmisfire = { policy = \"skip\", window = \"6h\" }");
    one("every = \"7d\"");
    one("schedule = \"0 1 1 * *\"\nmisfire = { window = \"6h\" }");
}

#[test]
fn every_wrong_date_is_told_in_its_line_and_a_list_is_bounded() {
    let lines =
        "schedule = \"@daily\"\nexclude = [\n  \"2026-02-30\",\n  \"2026-12-25\",\n  \"x\",\n]";
    let found = refused(lines);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("jobs.toml:6: job \"a.b\": exclude: \"2026-02-30\""), "{found:?}");
    assert!(found[1].starts_with("jobs.toml:8: job \"a.b\": exclude: \"x\""), "{found:?}");
    let days = |count| vec!["\"2026-12-25\""; count].join(", ");
    one(&format!("every = \"1h\"\nexclude = [{}]", days(MAX_EXCLUSIONS)));
    let found = refused(&format!("every = \"1h\"\nexclude = [{}]", days(MAX_EXCLUSIONS + 1)));
    assert!(found[0].contains("exclude: has 501 entries; 500 at most"), "{found:?}");
}

#[test]
fn a_zone_that_is_unknown_hides_no_other_problem_and_makes_none() {
    let found = refused(
        "at = \"2026-10-25T02:30:00\"\ntimezone = \"Europe/Viena\"\npast = \"soon\"\nmax_runs = 1",
    );
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("did you mean Europe/Vienna?"), "{found:?}");
}
