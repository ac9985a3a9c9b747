//! Crontabs.

use chrono::{DateTime, Datelike, Duration, Timelike, Utc};
use proptest::prelude::*;
use sexton_model::cron::DayRule;
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::jobs_file::parse;
use sexton_model::plan::Timetable;
use sexton_model::zone::Zone;

use crate::import::crontab::{Options, import};
use crate::import::{
    ImportError, ImportOutcome, MAX_FILE_BYTES, MAX_LEFT_OUT, jobs_file, tasks_file,
};

fn now() -> DateTime<Utc> {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn read(text: &str, system: bool) -> ImportOutcome {
    let options = Options { system, zone: Zone::UTC, service: None };
    import(text, &options, now()).unwrap()
}

/// The jobs of the printed file, which the checker accepts.
fn jobs(outcome: &ImportOutcome) -> Vec<JobSpec> {
    let text = jobs_file(outcome, "made by a test", None);
    parse("jobs.toml", &text).unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"))
}

fn left_out(outcome: &ImportOutcome) -> Vec<usize> {
    outcome.left_out.iter().filter_map(|left| left.line).collect()
}

const USERS: &str = "\
SHELL=/bin/bash
PATH = /usr/local/bin:/usr/bin
MAILTO=root
CRON_TZ=Europe/Vienna

# m h  dom mon dow   command
# Saves the shop,
# every night.
30 2 * * * /usr/local/bin/backup.sh --all
# 0 5 * * * /usr/local/bin/old.sh
*/15 9-17 * jan-jun MON-FRI cd /srv && ./poll.py

CRON_TZ=\"UTC\"
@daily\t/usr/local/bin/backup.sh --all
@reboot /usr/local/bin/warm-up
0 8 * * 7 mail -s \"100\\%\" boss%Hello%there
61 * * * * nonsense
five words are no schedule here
CRON_TZ=Europe/Viena
0 1 * * * lost
";

#[test]
fn a_users_crontab_becomes_jobs_and_says_what_it_does_not() {
    let outcome = read(USERS, false);
    let found = jobs(&outcome);
    let names: Vec<&str> = found.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["cron.backup", "cron.poll", "cron.backup-daily", "cron.mail"]);
    assert_eq!(found[0].description, "Saves the shop, every night.");
    assert_eq!(found[1].description, "", "an entry that was taken out describes nothing");
    let zones: Vec<&str> = found.iter().map(|job| job.timezone.name()).collect();
    assert_eq!(zones, ["Europe/Vienna", "Europe/Vienna", "UTC", "UTC"]);
    assert_eq!(found[2].schedule, Schedule::Cron { expression: "@daily".to_owned() });
    // The same command under the same variables is one task.
    assert_eq!(found[2].task_type, found[0].task_type);
    // MAILTO, @reboot, 61, words, the zone, and the entry whose zone nobody knows.
    assert_eq!(left_out(&outcome), [3, 15, 17, 18, 19, 20]);
    let descriptions = outcome.describe_left_out().join("\n");
    for part in
        ["line 3: \"MAILTO=root\"", "@reboot", "outside 0-59", "did you mean Europe/Vienna?"]
    {
        assert!(descriptions.contains(part), "{part}: {descriptions}");
    }
    let tasks = tasks_file(&outcome, "made by a test");
    assert_eq!(tasks.matches("[tasks.").count(), 3);
    for part in [
        "[tasks.\"cron.backup\"]",
        r#"command = ["/bin/bash", "-c", "/usr/local/bin/backup.sh --all"]"#,
        r#"environment = { set = { PATH = "/usr/local/bin:/usr/bin", SHELL = "/bin/bash" } }"#,
        r#"command = ["/bin/bash", "-c", 'mail -s "100%" boss']"#,
        r#"stdin = "Hello\nthere\n""#,
    ] {
        assert!(tasks.contains(part), "{part}\n{tasks}");
    }
    let file = jobs_file(&outcome, "made by a test", None);
    for line in tasks.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert!(file.contains(&format!("#   {line}\n")), "{line}\n{file}");
    }
    for line in outcome.describe_left_out() {
        assert!(file.contains(&line), "{line}\n{file}");
    }
}

#[test]
fn the_systems_crontab_has_a_column_for_the_user() {
    let text = "17 * * * * root cd / && run-parts --report /etc/cron.hourly\n@weekly www-data /x\n0 0 * * * root\n0~9 3 * * * root /y\n";
    let outcome = read(text, true);
    let users: Vec<_> = outcome.entries.iter().map(|entry| entry.program.user.clone()).collect();
    assert_eq!(
        users,
        [Some("root".to_owned()), Some("www-data".to_owned()), Some("root".to_owned())]
    );
    assert_eq!(outcome.entries[0].name, "cron.hourly");
    assert_eq!(outcome.entries[2].schedule, "H(0-9) 3 * * *");
    assert_eq!(left_out(&outcome), [3]);
    assert_eq!(jobs(&outcome).len(), 3);
    assert!(tasks_file(&outcome, "made by a test").contains("user = \"www-data\""));
    // Without the column the user is part of the command.
    assert_eq!(read(text, false).entries[1].program.command[2], "www-data /x");
}

#[test]
fn an_entry_whose_job_would_be_refused_is_left_out_with_the_checkers_words() {
    let long = format!("0 1 * * * {}\n", "x".repeat(40_000));
    let outcome = read(&format!("0 0 30 2 * /never\n{long}0 1 * * * /fine\n"), false);
    assert_eq!((left_out(&outcome), outcome.entries.len()), (vec![1, 2], 1));
    assert!(
        outcome.describe_left_out()[0].contains("never fires"),
        "{:?}",
        outcome.describe_left_out()
    );
    assert!(
        outcome.describe_left_out()[1].contains("32768 at most"),
        "{:?}",
        outcome.describe_left_out()
    );
    assert!(outcome.describe_left_out().iter().all(|line| line.chars().count() < 600));
}

#[test]
fn what_is_too_long_is_refused_and_what_is_left_out_is_bounded() {
    let options = Options { system: false, zone: Zone::UTC, service: None };
    let long = "#".repeat(MAX_FILE_BYTES + 1);
    assert_eq!(import(&long, &options, now()), Err(ImportError::TooLong(MAX_FILE_BYTES + 1)));
    let many = "* * * * * x\n".repeat(20_002);
    assert_eq!(import(&many, &options, now()), Err(ImportError::TooMany));
    let outcome = read(&"rubbish\n".repeat(MAX_LEFT_OUT + 7), false);
    assert_eq!((outcome.left_out.len(), outcome.more_left_out), (MAX_LEFT_OUT, 7));
    assert_eq!(outcome.describe_left_out().last().map(String::as_str), Some("and 7 more"));
}

#[test]
fn a_long_command_is_whole_in_the_comment_too() {
    let outcome = read(&format!("0 1 * * * {}\n", "xy ".repeat(8_000)), false);
    let file = jobs_file(&outcome, "made by a test", None);
    for line in tasks_file(&outcome, "made by a test").lines().skip_while(|l| !l.starts_with('[')) {
        assert!(file.contains(&format!("#   {line}\n")), "{line:.200}");
    }
}

#[test]
fn nothing_in_a_crontab_gets_out_of_a_comment_or_a_text() {
    let text = "# \u{1b}[2J\u{202e} \"\n0 1 * * * echo \"\u{1b}\\\" '''\u{feff}\r\nX=\u{7f}\n@reboot \u{9b}\n1 1 * * * y\n";
    let outcome = read(text, false);
    let file = jobs_file(&outcome, "made\nby \u{1b}", None);
    for text in [&file, &tasks_file(&outcome, "made by a test")] {
        assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{text:?}");
    }
    assert!(tasks_file(&outcome, "made by a test").contains("\\U0000001B"), "as TOML writes it");
    assert_eq!(jobs(&outcome).len(), 2);
    assert!(outcome.entries[0].program.command[2].contains('\u{1b}'), "as it was");
}

/// A field as its writer thinks of it, and the numbers that it selects.
fn field(
    min: u32,
    max: u32,
    names: &'static [&'static str],
) -> impl Strategy<Value = (String, Vec<u32>)> {
    let word = move |number: u32| match names.get(number.wrapping_sub(min) as usize) {
        Some(name) => (*name).to_owned(),
        None => number.to_string(),
    };
    let every = (1..=max).prop_map(move |step| {
        let numbers = (min..=max).step_by(step as usize).collect();
        (if step == 1 { "*".to_owned() } else { format!("*/{step}") }, numbers)
    });
    let some = prop::collection::vec((min..=max, min..=max, 1..5_u32, any::<bool>()), 1..4)
        .prop_map(move |items| {
            let (mut text, mut numbers) = (Vec::new(), Vec::new());
            for (a, b, step, alone) in items {
                let (a, b) = (a.min(b), a.max(b));
                if alone {
                    text.push(word(a));
                    numbers.push(a);
                } else {
                    text.push(format!("{}-{}/{step}", word(a), word(b)));
                    numbers.extend((a..=b).step_by(step as usize));
                }
            }
            (text.join(","), numbers)
        });
    prop_oneof![every, some]
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The reading of cron's own manual, minute by minute: minute, hour and month must be selected, and
    /// the day by both fields, or by either if neither begins with a star.
    #[test]
    fn the_jobs_fire_when_a_naive_reading_of_the_crontab_fires(
        (minute, hour, day, month, weekday) in (
            field(0, 59, &[]), field(0, 23, &[]), field(1, 31, &[]), field(1, 12, &MONTHS), field(0, 6, &DAYS),
        ),
        system in any::<bool>(),
        day_of_year in 0..365_i64,
    ) {
        let user = if system { "root " } else { "" };
        let line = format!("{} {}  {}\t{} {} {user}/bin/true\n", minute.0, hour.0, day.0, month.0, weekday.0);
        let outcome = read(&line, system);
        let found = jobs(&outcome);
        let either = !day.0.starts_with('*') && !weekday.0.starts_with('*');
        let fires = |at: DateTime<Utc>| {
            let by_day = day.1.contains(&at.day());
            let by_week = weekday.1.contains(&at.weekday().num_days_from_sunday());
            minute.1.contains(&at.minute())
                && hour.1.contains(&at.hour())
                && month.1.contains(&at.month())
                && if either { by_day || by_week } else { by_day && by_week }
        };
        if found.is_empty() {
            prop_assert!(outcome.describe_left_out()[0].contains("never fires"), "{:?}", outcome.describe_left_out());
            return Ok(());
        }
        // Said wherever other schedulers could mean something else.
        let restrict = |text: &str| text != "*";
        let two = restrict(&day.0) && restrict(&weekday.0);
        prop_assert_eq!(found[0].days, two.then_some(if either { DayRule::Either } else { DayRule::Both }));
        let table = Timetable::of(&found[0]).unwrap();
        let (start, days) = (now() + Duration::days(day_of_year), 3);
        let (mut at, end) = (start - Duration::minutes(1), start + Duration::days(days));
        let mut descriptions = Vec::new();
        while let Some(next) = table.next_after(at).filter(|next| *next < end) {
            descriptions.push(next);
            at = next;
        }
        let naive: Vec<_> =
            (0..days * 1_440).map(|n| start + Duration::minutes(n)).filter(|at| fires(*at)).collect();
        prop_assert_eq!(descriptions, naive, "{}", line);
    }

    #[test]
    fn any_text_gives_a_jobs_file_that_the_checker_accepts(
        text in "([*0-9/,@a-zA-Z=\"'%\\\\# -]{0,30}[\n\t \u{1b}\u{202e}é]){0,12}", system in any::<bool>(),
    ) {
        jobs(&read(&text, system));
    }
}
