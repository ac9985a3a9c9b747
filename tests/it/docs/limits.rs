//! The limits that the documents state, compared with the constants that keep them.

use std::ops::RangeInclusive;
use std::time::Duration;

use sexton_console::import;
use sexton_model::alerts_file;
use sexton_model::foreign::MAX_FOREIGN_JOBS;
use sexton_model::job::{self, Misfire};
use sexton_model::jobs_file::{self, limits};
use sexton_model::lock_key::range::{MAX_KEYS, MAX_RANGES};
use sexton_model::lock_key::{MAX_KEY, ranges_file};
use sexton_model::rate;
use sexton_model::result::{MAX_RESULT_BYTES, MAX_RESULT_DEPTH};
use sexton_model::retry::RetryPolicy;
use sexton_model::{cron, flow, pool, size, template, ticket};
use sexton_outbound::http::RETRY_AFTER_MAX;
use sexton_outbound::mail::{BODY_MAX_BYTES, RECIPIENTS_MAX, SUBJECT_MAX_BYTES};
use sexton_outbound::secret::SECRET_MAX_BYTES;
use sexton_store::retention::OWN_KEY_RETENTION_DAYS;
use sexton_worker::catalogue::{
    COMMAND_MAX_WORDS, CPU_TIME, EMAIL_TIMEOUT_DEFAULT, GRACE_MAX, HEADERS_MAX,
    HTTP_TIMEOUT_DEFAULT, LOCK_TIMEOUT_MAX, MEMORY, OPEN_FILES, RESPONSE_DEFAULT, RESPONSE_MAX,
    SQL_MAX_BYTES, STATEMENT_TIMEOUT_MAX, STDIN_TEXT_MAX_BYTES, TIMEOUT_MAX, VARIABLES_MAX,
};
use sexton_worker::executor::command::INHERITED_VARIABLES;
use sexton_worker::output::OutputLimits;

use super::text;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

#[test]
fn the_limits_of_the_page_are_those_of_the_code() {
    let output = OutputLimits::default();
    let limits = [
        ("params of a job, a trigger or an enqueued execution", params_limit()),
        ("job name", bytes(job::MAX_NAME_BYTES)),
        ("task type", bytes(job::MAX_TASK_TYPE_BYTES)),
        ("pool name", bytes(pool::MAX_POOL_NAME_BYTES)),
        ("execution key", bytes(job::MAX_KEY_BYTES)),
        (
            "members of a flow",
            format!(
                "{}, which wait for {} others in all; {} and {} of the flow of a job, in {} KiB of JSON",
                with_commas(flow::MAX_MEMBERS),
                with_commas(flow::MAX_EDGES),
                with_commas(flow::MAX_JOB_MEMBERS),
                with_commas(flow::MAX_JOB_EDGES),
                flow::MAX_JOB_FLOW_BYTES / KIB
            ),
        ),
        (
            "ranges of lock keys",
            format!(
                "{} of {} keys each, from -(2^53 - 1) to 2^53 - 1",
                with_commas(MAX_RANGES),
                with_commas(MAX_KEYS as usize)
            ),
        ),
        (
            "file that `sexton keys import` reads",
            format!("{} MiB", ranges_file::MAX_FILE_BYTES / MIB),
        ),
        ("placeholders of a job", with_commas(template::MAX_PLACEHOLDERS)),
        ("idempotency key, filled", bytes(template::MAX_FILLED_KEY_BYTES)),
        ("body of a message", format!("{} MiB", ticket::MAX_BODY_BYTES / MIB)),
        ("cron expression", bytes(cron::MAX_EXPRESSION_BYTES)),
        (
            "jobs file",
            format!(
                "{} MiB, {} jobs",
                jobs_file::MAX_FILE_BYTES / MIB,
                with_commas(jobs_file::MAX_JOBS)
            ),
        ),
        (
            "file that `sexton jobs import` reads",
            format!(
                "{} MiB, {} entries",
                import::MAX_FILE_BYTES / MIB,
                with_commas(import::MAX_ENTRIES)
            ),
        ),
        (
            "alerts file",
            format!(
                "{} MiB, {} channels, {} routes",
                alerts_file::MAX_FILE_BYTES / MIB,
                alerts_file::MAX_CHANNELS,
                alerts_file::MAX_ROUTES
            ),
        ),
        ("late firings that one catch-up runs", with_commas(Misfire::MAX_LIMIT as usize)),
        ("shortest period", in_words(job::MIN_PERIOD)),
        ("timeout of an attempt", in_words(*limits::TIMEOUT.end())),
        (
            "kept output of an attempt",
            format!(
                "{} KiB and {} lines of its head, the same of its tail",
                output.part_bytes / KIB,
                output.part_lines
            ),
        ),
        (
            "result of an attempt",
            format!("{} KiB of JSON, {} levels deep", MAX_RESULT_BYTES / KIB, MAX_RESULT_DEPTH),
        ),
        ("reason of a failure", bytes(ticket::MAX_REASON_BYTES)),
        ("a caller's own key deduplicates for", format!("{OWN_KEY_RETENTION_DAYS} days")),
        ("jobs of tasks that other programs publish", with_commas(MAX_FOREIGN_JOBS as usize)),
    ];
    assert_eq!(MAX_KEY, (1 << 53) - 1);
    let page = text("docs/reference/limits.md");
    for (what, limit) in limits {
        let row = format!("| {what} | {limit} |");
        assert!(page.contains(&row), "docs/reference/limits.md does not say: {row}");
    }
    // Settings state their own limits; the program writes that page.
    assert!(page.contains("| slots of a worker | 1,000 |"));
    let configuration = text("docs/reference/settings.md");
    assert!(configuration.contains("Allowed: a whole number from 1 to 1000 (tasks)."));
}

#[test]
fn the_limits_of_job_fields_match_the_page() {
    let default = Misfire::default();
    let budgets = RetryPolicy::default();
    let (jobs, tasks) = (&text("docs/reference/jobs.md"), &text("docs/reference/tasks.md"));
    let expected = [
        ("description", None, bytes(limits::MAX_DESCRIPTION_BYTES)),
        ("target", None, format!("a number, or text of {}", bytes(limits::MAX_TARGET_BYTES))),
        ("params", None, params_limit()),
        ("exclude", None, format!("{} days or ranges of days", job::MAX_EXCLUSIONS)),
        ("jitter", None, span(&limits::JITTER)),
        ("max_runs", None, counts(&limits::MAX_RUNS)),
        ("misfire.window", Some(in_words(default.window)), span(&limits::MISFIRE_WINDOW)),
        (
            "misfire.limit",
            Some(default.limit.to_string()),
            format!("1 to {}", with_commas(Misfire::MAX_LIMIT as usize)),
        ),
        (
            "misfire.rate",
            None,
            format!("1 to {} each `s`, `m`, `h` or `d`", with_commas(rate::MAX_COUNT as usize)),
        ),
        ("retry.max_retries", None, counts(&limits::MAX_RETRIES)),
        (
            "retry.max_timeouts",
            Some(budgets.max_timeouts.to_string()),
            counts(&limits::MAX_TIMEOUTS),
        ),
        ("retry.max_crashes", Some(budgets.max_crashes.to_string()), counts(&limits::MAX_CRASHES)),
        (
            "retry.permanent",
            None,
            format!(
                "{} classes of {}, each of `A-Z a-z 0-9 . _ -`",
                limits::MAX_PERMANENT,
                bytes(job::MAX_CLASS_BYTES)
            ),
        ),
        ("retry.delay", None, span(&limits::RETRY_DELAY)),
        (
            "retry.multiplier",
            None,
            format!("{} to {}", limits::RETRY_MULTIPLIER.start(), limits::RETRY_MULTIPLIER.end()),
        ),
        ("retry.max_delay", None, span(&limits::RETRY_MAX_DELAY)),
        (
            "retry.jitter",
            None,
            format!("{} to {}", limits::RETRY_JITTER.start(), limits::RETRY_JITTER.end()),
        ),
        ("timeout", Some(in_words(job::DEFAULT_TIMEOUT)), span(&limits::TIMEOUT)),
        ("lease", None, span(&limits::LEASE)),
        ("lock.row", None, bytes(job::MAX_LOCK_ROW_BYTES)),
        ("lock.at_most", None, span(&limits::LOCK_AT_MOST)),
        ("lock.at_least", None, span(&limits::LOCK_AT_LEAST)),
        ("start_within", None, span(&limits::START_WITHIN)),
        ("expect_within", None, span(&limits::EXPECT_WITHIN)),
        ("max_runtime", None, span(&limits::MAX_RUNTIME)),
        ("alert_after", Some("1".into()), format!("1 to {}", job::MAX_IN_A_ROW)),
        ("recover_after", Some("1".into()), format!("1 to {}", job::MAX_IN_A_ROW)),
        ("remind_every", None, span(&limits::REMIND_EVERY)),
        ("stale_after", None, span(&limits::STALE_AFTER)),
        ("pause_after_failures", None, format!("1 to {}", job::MAX_PAUSE_AFTER_FAILURES)),
        ("labels", None, format!("{} labels", limits::MAX_LABELS)),
    ];
    for (field, default, allowed) in expected {
        check(jobs, field, default, &allowed);
    }
    check(tasks, "timeout", None, &span(&(job::MIN_PERIOD..=TIMEOUT_MAX)));
    check(tasks, "grace", None, &span(&(Duration::ZERO..=GRACE_MAX)));
    check(tasks, "sql", None, &format!("{} KiB", SQL_MAX_BYTES / KIB));
    check(tasks, "lock_timeout", None, &format!("1 ms to {}", in_words(LOCK_TIMEOUT_MAX)));
    let longest = in_words(STATEMENT_TIMEOUT_MAX);
    check(tasks, "statement_timeout", None, &format!("1 ms to {longest}"));
    check(tasks, "command", None, &format!("{COMMAND_MAX_WORDS} words of 32 KiB"));
    let stdin = size::format(STDIN_TEXT_MAX_BYTES as u64);
    check(tasks, "stdin", None, &format!("text of {}", stdin.replace("KiB", " KiB")));
    check(tasks, "environment.inherit", None, &format!("{VARIABLES_MAX} names"));
    check(tasks, "environment.set", None, &format!("{VARIABLES_MAX} variables of 32 KiB"));
    let memory = (MEMORY.start() >> 20, MEMORY.end() >> 30);
    check(tasks, "limits.memory", None, &format!("{} MiB to {} GiB", memory.0, memory.1));
    check(tasks, "limits.cpu_time", None, &span(&CPU_TIME));
    check(tasks, "limits.open_files", None, "16 to 1,048,576");
    assert_eq!(OPEN_FILES, 16..=1_048_576);
    let inherited = INHERITED_VARIABLES.map(|name| format!("`{name}`"));
    let (last, first) = inherited.split_last().unwrap();
    let inherited = format!("{} and {last}", first.join(", "));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(tasks).contains(&inherited), "docs/reference/tasks.md does not say: {inherited}");
    check(tasks, "http.headers", None, &format!("{HEADERS_MAX} of visible ASCII, 8 KiB each"));
    let timeout = Some(in_words(HTTP_TIMEOUT_DEFAULT));
    check(tasks, "http.timeout", timeout, "100 ms to 30 days");
    let response = Some(size::format(RESPONSE_DEFAULT));
    let response_max = format!("0 to {} MiB", RESPONSE_MAX / MIB as u64);
    check(tasks, "http.max_response", response, &response_max);
    check(tasks, "email.to", None, &format!("{RECIPIENTS_MAX} addresses"));
    let subject = format!("{} when it is filled in", bytes(SUBJECT_MAX_BYTES));
    check(tasks, "email.subject", None, &subject);
    let body = format!("{} MiB when it is filled in", BODY_MAX_BYTES / MIB);
    check(tasks, "email.body", None, &body);
    let timeout = Some(in_words(EMAIL_TIMEOUT_DEFAULT));
    check(tasks, "email.timeout", timeout, "100 ms to 30 days");
    let longest = format!("the shortest wait, {} at most", in_words(RETRY_AFTER_MAX));
    assert!(tasks.contains(&longest), "docs/reference/tasks.md does not say: {longest}");
    let secret = format!("A secret has at most {} KiB", SECRET_MAX_BYTES / KIB);
    assert!(tasks.contains(&secret), "docs/reference/tasks.md does not say: {secret}");
    let template = bytes(limits::MAX_TEMPLATE_BYTES);
    check(jobs, "idempotency_key", None, &template);
}

/// Asserts that the table has the field with this limit in its last column and, if given, this default.
fn check(table: &str, field: &str, default: Option<String>, allowed: &str) {
    let begin = format!("| `{field}` |");
    let row = table.lines().find(|line| line.starts_with(&begin)).unwrap_or_else(|| {
        panic!("docs/reference/jobs.md or docs/reference/tasks.md has no row for {field}");
    });
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    let [_, _, page_default, page_range] = cells[..] else { panic!("four columns: {row}") };
    assert_eq!(page_range, allowed, "{field} in docs/reference/jobs.md or docs/reference/tasks.md");
    if let Some(default) = default {
        let plain = page_default.trim_matches('`');
        let same = match sexton_model::duration::parse(plain) {
            Ok(duration) => in_words(duration) == default,
            Err(_) => plain == default,
        };
        assert!(same, "the default of {field} in its page: {page_default}, it is {default}");
    }
}

fn bytes(number: usize) -> String {
    format!("{} bytes", with_commas(number))
}

fn counts(range: &RangeInclusive<i64>) -> String {
    format!("{} to {}", range.start(), with_commas(*range.end() as usize))
}

fn span(range: &RangeInclusive<Duration>) -> String {
    format!("{} to {}", in_words(*range.start()), in_words(*range.end()))
}

/// A span of time as the documents write it: in the largest unit that fits.
fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (number, unit) = match seconds {
        0..60 => return format!("{seconds} s"),
        _ if seconds.is_multiple_of(86_400) => (seconds / 86_400, "day"),
        _ if seconds.is_multiple_of(3_600) => (seconds / 3_600, "hour"),
        _ => (seconds / 60, "minute"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

fn with_commas(number: usize) -> String {
    let (thousands, rest) = (number / 1_000, number % 1_000);
    if thousands == 0 { rest.to_string() } else { format!("{thousands},{rest:03}") }
}

fn params_limit() -> String {
    let (bytes, depth) = (job::MAX_PARAMS_BYTES, job::MAX_PARAMS_DEPTH);
    format!("{} KiB of JSON, {depth} levels deep", bytes / KIB)
}
