//! The checks file: checks of foreign jobs, parsed and checked.
//!
//! All problems are reported at once, each with its line and place, and nothing is ignored: an unknown field is a problem.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeTable;

use crate::alerts_file::{AlertsProblem, parse_document, tables};
use crate::channel::is_channel_name;
use crate::check::{Cadence, CheckSpec, is_check_name};
use crate::cron::{Dialect, Expression};
use crate::incident::Severity;
use crate::jobs_file::expectations::in_a_row;
use crate::jobs_file::fields::{Fields, report_duplicate_name};
use crate::jobs_file::job::labels;
use crate::jobs_file::limits::{MAX_RUNTIME, REMIND_EVERY};
use crate::jobs_file::problem::Report;
use crate::quoting::quoted;
use crate::zone::Zone;

/// Maximum length of a checks file, in bytes.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of checks in a file.
pub const MAX_CHECKS: usize = 10_000;
/// A check's `every`.
pub const EVERY: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(366 * 24);
/// A check's `grace`.
pub const GRACE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(366 * 24);
/// A check's `early_by`.
pub const EARLY_BY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_hours(24);

const FIELDS: [&str; 13] = [
    "name",
    "every",
    "schedule",
    "timezone",
    "grace",
    "early_by",
    "max_runtime",
    "alert_after",
    "recover_after",
    "remind_every",
    "severity",
    "labels",
    "key",
];

/// Parses a checks file. `file_name` is only repeated in problems.
///
/// # Errors
///
/// Every problem of the file, in the order of its lines. Nothing of a file with a problem should be applied.
pub fn parse(file_name: &str, text: &str) -> Result<Vec<CheckSpec>, Vec<AlertsProblem>> {
    parse_document(file_name, text, MAX_FILE_BYTES, read)
}

fn read(document: &DeTable<'_>, report: &mut Report<'_>) -> Vec<CheckSpec> {
    let hints = [("checks", "write [[check]]"), ("job", "jobs stand in a jobs file")];
    Fields::of_file(document, report).report_unknown_fields(&["check"], &[], &hints);
    let mut lines = HashMap::new();
    let mut checks = Vec::new();
    let tables = tables(document, "check", MAX_CHECKS, report);
    let place = |(number, (table, _)): (usize, &(&DeTable<'_>, usize))| {
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        let name = name.map_or_else(|| number.to_string(), quoted);
        format!("check {name}")
    };
    let places: Vec<String> = (1..).zip(&tables).map(place).collect();
    for ((table, at), place) in tables.iter().zip(&places) {
        report_duplicate_name(table, "check", Some(place), report, &mut lines);
        checks.extend(check(&mut Fields::of_flow(table, *at, Some(place), report)));
    }
    checks
}

fn check(fields: &mut Fields<'_, '_, '_>) -> Option<CheckSpec> {
    let hints = [("period", "write every"), ("cron", "write schedule"), ("slug", "write name")];
    fields.report_unknown_fields(&FIELDS, &[], &hints);
    for required in ["name", "grace"] {
        if !fields.has(required) {
            fields.problem(required, "is missing");
        }
    }
    let name = name(fields);
    let cadence = cadence(fields, name.as_deref().unwrap_or_default());
    let grace = fields.duration("grace", GRACE);
    let early_by = fields.duration("early_by", EARLY_BY);
    if early_by.is_some() && !fields.has("schedule") {
        fields.problem(
            "early_by",
            "has a meaning only with schedule: a period counts from the last ping",
        );
    }
    let max_runtime = fields.duration("max_runtime", MAX_RUNTIME);
    let alert_after = in_a_row(fields, "alert_after");
    let recover_after = in_a_row(fields, "recover_after");
    let remind_every = fields.duration("remind_every", REMIND_EVERY);
    let severity = fields.choice("severity", Severity::parse, &["low", "medium", "high"], &[]);
    let labels = labels(fields);
    let key = key(fields);
    Some(CheckSpec {
        name: name?,
        cadence: cadence?,
        grace: grace?,
        early_by,
        max_runtime,
        alert_after,
        recover_after,
        remind_every,
        severity,
        labels,
        key,
    })
}

fn name(fields: &mut Fields<'_, '_, '_>) -> Option<String> {
    let name = fields.text("name", usize::MAX)?;
    if is_check_name(name) {
        return Some(name.to_owned());
    }
    let shape = "is no name of a check; write up to 100 lower-case letters, digits, '.', '_' and '-', of which the first is a letter \
                 or a digit";
    fields.problem("name", format!("{} {shape}", quoted(name)));
    None
}

fn key(fields: &mut Fields<'_, '_, '_>) -> Option<String> {
    let key = fields.text("key", usize::MAX)?;
    if is_channel_name(key) {
        return Some(key.to_owned());
    }
    let shape = "is no name of a ping key; write the name that `sexton checks keys` shows, and not the key itself";
    fields.problem("key", shape);
    None
}

fn cadence(fields: &mut Fields<'_, '_, '_>, name: &str) -> Option<Cadence> {
    match (fields.has("every"), fields.has("schedule")) {
        (true, true) => fields.problem("schedule", "is there beside every; write one of them"),
        (false, false) => fields.problem("every", "is missing; write every or schedule"),
        _ => {}
    }
    let zone = fields.text("timezone", usize::MAX).map(Zone::parse);
    if fields.has("timezone") && !fields.has("schedule") {
        fields.problem("timezone", "has a meaning only with schedule: periods need no zone");
    }
    if let Some(Err(error)) = &zone {
        fields.problem("timezone", error.to_string());
    }
    if let Some(every) = fields.duration("every", EVERY) {
        return Some(Cadence::Every(every));
    }
    let text = fields.text("schedule", usize::MAX)?;
    let zone = zone.and_then(Result::ok).unwrap_or(Zone::UTC);
    match Expression::parse(text, Dialect::Any, name) {
        Ok(_) => Some(Cadence::Schedule { expression: text.to_owned(), zone }),
        Err(error) => {
            fields.problem("schedule", error.to_string());
            None
        }
    }
}
