//! An output with fixed values where it differs each time.

use std::fs;
use std::sync::LazyLock;

use regex::Regex;
use sexton_service::clock;

/// Rules in order: what differs each time, and what the page shows in its place.
const RULES: &[(&str, &str)] = &[
    // Ids of version 7, whole and shortened.
    (
        r"\b01[9a-f][0-9a-f]{5}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        "01a20ddb-d340-7542-92b7-3cf6e02be5f1",
    ),
    (r"\b01[9a-f][0-9a-f]{5}(-[0-9a-f]{1,4}){0,4}( |$)", "01a20ddb$2"),
    // Instants.
    (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00", "2026-01-05T08:00:00.000000+00:00"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) 20\d\d-\d\d-\d\d ", "Mon 2026-01-05 "),
    (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "2026-01-05T08:00:00.000Z"),
    (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-05T08:00:00Z"),
    (r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", "2026-01-05 08:00:00"),
    (r"\b\d\d:\d\d:\d\d\.\d{3}\b", "08:00:00.000"),
    // Spans.
    (r"\b(\d+ (d|h|m|s) )?\d+(\.\d+)? (d|h|m|s|ms) ago\b", "2 s ago"),
    (r"\(now\)", "(2 s ago)"),
    (r"\b(started|ended|published|changed) now\b", "$1 2 s ago"),
    (r"\bin (\d+ (d|h|m|s) )?\d+(\.\d+)? (d|h|m|s|ms)\b", "in 12 s"),
    (r"( {2,})now( {2,}|$)", "${1}2 s ago$2"),
    (r"( {2,})(\d+ (d|h|m|s) )?\d+(\.\d+)? (d|h|m|s|ms)( {2,}|$)", "${1}2 s$6"),
    (r"\bfor (\d+ (d|h|m|s) )?\d+(\.\d+)? (d|h|m|s|ms)\b", "for 2 s"),
    (r"(first seen +)now,", "${1}2 s ago,"),
    (r"\blast now", "last 2 s ago"),
    // Measurements, processes and versions.
    (r"\b(p\d\d) \d+(\.\d+)? ms", "$1 5.0 ms"),
    (r"\d+ in the failed queue", "2 in the failed queue"),
    (r"\d+ firings, one a second", "5 firings, one a second"),
    (r"[·▁▂▃▄▅▆▇█]{24}", "·······················█"),
    (r"\bPostgreSQL \d[\d.]*( \([^)]*\))?", "PostgreSQL 15"),
    (r"\bRabbitMQ \d[\d.]*", "RabbitMQ 3.10"),
    (r"\b(process id|worker|scheduler)( +)\d+\b", "$1${2}4123"),
    (r"\bsexton_test_\w+|\btest[-_][0-9a-z_-]{8,}\b", "sexton"),
    (r"add --cursor [\w-]+", "add --cursor WyJlIixbIjIw"),
    (r"\b\d+:[0-9a-f]{64}\b", "29:9f86d081884c7d65…"),
    (r"^\d+ actions are intact", "29 actions are intact"),
    (r"\b\d+ not sealed yet", "2 not sealed yet"),
    (r"\bops1:\d+( pts/\d+| ssh [\d.:]+)*", "ops1:4123"),
];

/// A rule and what the page shows in its place.
type Rule = (Regex, &'static str);

/// Compiled once: in a test build that takes longer than everything else here.
static COMPILED: LazyLock<Vec<Rule>> = LazyLock::new(|| compile(None));

/// With a day given, instants of other days stay.
fn compile(only_day: Option<&str>) -> Vec<Rule> {
    let rule = |(differs, shown): &(&str, &'static str)| {
        let differs = match only_day {
            Some(day) => differs.replacen(r"\b20\d\d-\d\d-\d\d", &format!(r"\b{day}"), 1),
            None => (*differs).to_owned(),
        };
        (Regex::new(&differs).unwrap(), *shown)
    };
    RULES.iter().map(rule).collect()
}

/// Replaces what differs each time. Where `command` itself names instants, those of other days stay.
pub(super) fn stable(command: &str, output: &str) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut output = output.to_owned();
    if !host.trim().is_empty() {
        let user = Regex::new(&format!(r"[\w.-]+@{}\b", regex::escape(host.trim()))).unwrap();
        output = user.replace_all(&output, "ann@ops1").into_owned();
        let name = Regex::new(&format!(r"\b{}\b", regex::escape(host.trim()))).unwrap();
        output = name.replace_all(&output, "ops1").into_owned();
    }
    let is_fixed = command.contains("--from 20") || command.contains("--since 20");
    let of_today = is_fixed.then(|| compile(Some(&clock::now().format("%Y-%m-%d").to_string())));
    let rules = of_today.as_ref().unwrap_or(&COMPILED);
    let mut lines = Vec::new();
    for line in output.lines() {
        let mut line = line.trim_end().to_owned();
        for (differs, shown) in rules {
            // Neighbouring cells share their blanks.
            for _ in 0..2 {
                line = differs.replace_all(&line, *shown).into_owned();
            }
        }
        lines.push(line);
    }
    without_finding(&mut lines, "broker_flag_unseen");
    aligned(&lines).join("\n")
}

/// Removes a finding of the doctor that depends on the server's version.
fn without_finding(lines: &mut Vec<String>, code: &str) {
    if let Some(at) = lines.iter().position(|line| line.starts_with(&format!("note {code}:"))) {
        let end = lines[at + 1..].iter().take_while(|line| line.starts_with("    ")).count();
        lines.drain(at..=at + end);
    }
}

/// Aligns the cells of consecutive lines that have as many of them. A table with empty cells stays as it is.
fn aligned(lines: &[String]) -> Vec<String> {
    let blanks = Regex::new(" {2,}").unwrap();
    let rows: Vec<Vec<&str>> =
        lines.iter().map(|line| blanks.split(line.trim()).collect()).collect();
    let mut out = Vec::new();
    let mut from = 0;
    while from < rows.len() {
        let is_row = |line: &&String| line.contains("  ") && !line.starts_with("    ");
        let block = lines[from..].iter().take_while(is_row).count().max(1);
        let rows = &rows[from..from + block];
        let columns = rows[0].len();
        if columns < 2 || rows.iter().any(|row| row.len() != columns) {
            out.extend_from_slice(&lines[from..from + block]);
        } else {
            let width = |column: usize| {
                rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
            };
            for row in rows {
                let padded =
                    row.iter().enumerate().map(|(n, cell)| format!("{cell:<0$}", width(n)));
                out.push(padded.collect::<Vec<_>>().join("  ").trim_end().to_owned());
            }
        }
        from += block;
    }
    out
}

/// The lines of an output, at most `limit`, and an ellipsis for the others.
pub(super) fn with_cuts(output: &str, limit: usize) -> Vec<String> {
    let mut lines: Vec<String> = output.trim_end().lines().map(str::to_owned).collect();
    if lines.len() > limit {
        lines.truncate(limit);
        lines.push("…".to_owned());
    }
    lines
}

#[test]
fn what_differs_each_time_is_fixed_and_nothing_else() {
    let output = "ID             STATE   WHEN\n01a20ddb-d3  failed  now\n01a3e1f0-d340-7542-92b7-3cf6e02be5f0  ok  3 m 5 s ago";
    assert_eq!(
        stable("sexton x", output),
        "ID                                    STATE   WHEN\n\
         01a20ddb                              failed  2 s ago\n\
         01a20ddb-d340-7542-92b7-3cf6e02be5f1  ok      2 s ago"
    );
    let at = "2031-03-01T02:30:00Z";
    assert_eq!(stable("sexton cron next --from 2031-01-01T00:00:00Z", at), at);
    assert_eq!(stable("sexton status", at), "2026-01-05T08:00:00Z");
    assert_eq!(with_cuts("a\nb\nc\n", 2), ["a", "b", "…"]);
}
