//! Parses one `[[job]]` table.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::fields::{Fields, integer, kind, text_problem};
use super::limits::{
    LEASE, MAX_DESCRIPTION_BYTES, MAX_LABEL_BYTES, MAX_LABEL_NAME_BYTES, MAX_LABELS,
    MAX_TARGET_BYTES, MAX_TEMPLATE_BYTES, MISFIRE_WINDOW, STALE_AFTER, TIMEOUT,
};
use super::{expectations, heartbeat, lock, params, retry, schedule};
use crate::duration;
use crate::job::{
    DEFAULT_TIMEOUT, JobSpec, MAX_PAUSE_AFTER_FAILURES, Misfire, MisfirePolicy, NameError, Overlap,
    Schedule, check_name, check_task_type,
};
use crate::params::{RESERVED_NAME, UNREADABLE_NAME};
use crate::pool::PoolName;
use crate::quoting::quoted;
use crate::rate::Rate;
use crate::template::{self, KEY_FIELD};

const KNOWN_FIELDS: [&str; 41] = [
    "name",
    "description",
    "target",
    "schedule",
    "every",
    "phase",
    "at",
    "past",
    "timezone",
    "dst",
    "days",
    "start",
    "end",
    "exclude",
    "jitter",
    "max_runs",
    "task",
    "params",
    "pool",
    "overlap",
    "misfire",
    "retry",
    "timeout",
    "lease",
    "lock_key",
    "lock",
    "on_locked",
    "idempotency_key",
    "start_within",
    "expect_within",
    "max_runtime",
    "alert_after",
    "recover_after",
    "remind_every",
    "severity",
    "heartbeat",
    "stale_after",
    "pause_after_failures",
    "verify",
    "paused",
    "labels",
];

const PLANNED_FIELDS: [&str; 3] = ["on_success", "holidays", "priority"];

const HINTS: [(&str, &str); 16] = [
    ("cron", "write schedule = \"…\""),
    ("interval", "write every = \"…\""),
    ("offset", "write phase = \"…\""),
    ("limit", "write max_runs = …"),
    ("until", "write end = \"…\""),
    ("tz", "write timezone = \"…\""),
    ("type", "write task = \"…\""),
    ("task_type", "write task = \"…\""),
    ("queue", "write pool = \"…\""),
    ("verify_task", "write verify = \"…\""),
    ("max_retries", "write retry = { max_retries = … }"),
    ("suspend", "write paused = true"),
    ("enabled", "write paused = true for a job that is created without firing"),
    ("command", "a job names a task type; what it runs stands in the worker's task catalogue"),
    ("http", "a job names a task type; what it calls stands in the worker's task catalogue"),
    ("sql", "a job names a task type; what it runs stands in the worker's task catalogue"),
];

/// Parses a job; `None` after any reported problem.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Option<JobSpec> {
    let before = fields.problems();
    let name = name(fields, "name", check_name);
    let task_type = name_of_task(fields);
    let when = schedule::read(fields, name.unwrap_or_default());
    let lock = lock::read(fields);
    let timeout = fields.duration("timeout", TIMEOUT).unwrap_or(DEFAULT_TIMEOUT);
    let defaults =
        JobSpec::new(name.unwrap_or_default(), task_type.unwrap_or_default(), when.schedule);
    let job = JobSpec {
        description: fields
            .text("description", MAX_DESCRIPTION_BYTES)
            .map_or(defaults.description, str::to_owned),
        target: target(fields),
        params: params::read(fields),
        pool: pool(fields).unwrap_or(defaults.pool),
        overlap: overlap(fields).unwrap_or(defaults.overlap),
        misfire: misfire(fields, &defaults.schedule),
        retry: retry::read(fields),
        timeout,
        lease: fields.duration("lease", LEASE),
        lock_key: lock.key,
        lock_row: lock.row,
        on_locked: lock.on_locked,
        idempotency_template: template(fields),
        expectations: expectations::read(fields, timeout),
        heartbeat: heartbeat::read(fields),
        stale_after: fields.duration("stale_after", STALE_AFTER),
        pause_after_failures: fields
            .integer("pause_after_failures", 1..=i64::from(MAX_PAUSE_AFTER_FAILURES))
            .map(|failures| failures as u32),
        verify_task: verify(fields),
        paused: fields.boolean("paused").unwrap_or(false),
        labels: labels(fields),
        flow: Vec::new(),
        name: defaults.name,
        schedule: defaults.schedule,
        constraints: when.constraints,
        past: when.past,
        timezone: when.timezone,
        dst: when.dst,
        days: when.days,
        task_type: defaults.task_type,
    };
    check_stale(fields, &job);
    for (field, message) in template::check_job(&job) {
        fields.problem(field, message);
    }
    fields.report_unknown_fields(&KNOWN_FIELDS, &PLANNED_FIELDS, &HINTS);
    (fields.problems() == before).then_some(job)
}

fn name_of_task<'a>(fields: &mut Fields<'a, '_, '_>) -> Option<&'a str> {
    name(fields, "task", check_task_type)
}

fn name<'a>(
    fields: &mut Fields<'a, '_, '_>,
    field: &str,
    check: impl Fn(&str) -> Result<(), NameError>,
) -> Option<&'a str> {
    if !fields.has(field) {
        fields.problem(field, "is missing; every job needs one");
        return None;
    }
    // The check has its own length limit.
    let text = fields.text(field, usize::MAX)?;
    match check(text) {
        Ok(()) => Some(text),
        Err(error) => {
            fields.problem(field, error.to_string());
            None
        }
    }
}

fn verify(fields: &mut Fields<'_, '_, '_>) -> Option<String> {
    if !fields.has("verify") {
        return None;
    }
    name(fields, "verify", check_task_type).map(str::to_owned)
}

fn target(fields: &mut Fields<'_, '_, '_>) -> Option<String> {
    if let Some(DeValue::Integer(digits)) = fields.raw("target").map(toml::Spanned::get_ref) {
        let number = integer(digits);
        if number.is_none() {
            fields.problem("target", "does not fit into 64 bits; write it as text in quotes");
        }
        return number.map(|number| number.to_string());
    }
    let text = fields.text("target", MAX_TARGET_BYTES)?;
    if text.is_empty() {
        fields.problem("target", "is empty; leave it out");
    }
    Some(text.to_owned())
}

fn pool(fields: &mut Fields<'_, '_, '_>) -> Option<PoolName> {
    let text = fields.text("pool", usize::MAX)?;
    let pool = PoolName::new(text).ok();
    if pool.is_none() {
        let rule = "is not a pool name; a lower-case letter first, then up to 30 lower-case \
                    letters, digits and hyphens";
        fields.problem("pool", format!("{} {rule}", quoted(text)));
    }
    pool
}

/// Refuses a firing that jitter can make stale before it is due.
fn check_stale(fields: &mut Fields<'_, '_, '_>, job: &JobSpec) {
    if let (Some(stale), Some(jitter)) = (job.stale_after, job.constraints.jitter)
        && stale <= jitter
    {
        let [stale, jitter] = [stale, jitter].map(duration::format);
        let message = format!(
            "{stale} is not longer than jitter = {jitter}, by which a firing can be later than its \
             nominal time"
        );
        fields.problem("stale_after", message);
    }
}

fn overlap(fields: &mut Fields<'_, '_, '_>) -> Option<Overlap> {
    fields.choice("overlap", Overlap::parse, &["allow", "skip", "queue", "replace"], &[])
}

fn misfire(fields: &mut Fields<'_, '_, '_>, schedule: &Schedule) -> Misfire {
    let mut misfire = Misfire::default();
    let Some(mut inside) = fields.inside("misfire", "misfire.") else { return misfire };
    let words = ["skip", "fire_once", "fire_all"];
    if let Some(policy) = inside.choice("policy", MisfirePolicy::parse, &words, &[]) {
        misfire.policy = policy;
    }
    if let Some(window) = inside.duration("window", MISFIRE_WINDOW) {
        misfire.window = window;
        if let Schedule::Every { period, .. } = schedule
            && window < *period
            && misfire.policy != MisfirePolicy::Skip
        {
            let [window, period] = [window, *period].map(duration::format);
            let message = format!(
                "{window} is shorter than every = {period}, so a firing can be too old for it while \
                 it is still the newest; write at least {period}, or policy = \"skip\""
            );
            inside.problem("window", message);
        }
    }
    if let Some(limit) = inside.integer("limit", 1..=i64::from(Misfire::MAX_LIMIT)) {
        misfire.limit = limit as u32;
        if misfire.policy != MisfirePolicy::FireAll {
            inside.problem("limit", "has a meaning only with policy = \"fire_all\"");
        }
    }
    if let Some(text) = inside.text("rate", usize::MAX) {
        match text.parse::<Rate>() {
            Ok(_) if misfire.policy != MisfirePolicy::FireAll => {
                inside.problem("rate", "has a meaning only with policy = \"fire_all\"");
            }
            Ok(rate) => misfire.rate = Some(rate),
            Err(error) => inside.problem("rate", format!("{} is none; {error}", quoted(text))),
        }
    }
    inside.report_unknown_fields(&["policy", "window", "limit", "rate"], &[], &[]);
    misfire
}

/// Reads the template of the idempotency key. Its placeholders are `{job}`, `{execution_key}` and those of
/// [`mod@template`].
fn template(fields: &mut Fields<'_, '_, '_>) -> Option<String> {
    let text = fields.text(KEY_FIELD, MAX_TEMPLATE_BYTES)?;
    if text.chars().any(char::is_control) {
        fields.problem(KEY_FIELD, "holds a control character, which no header can carry");
    }
    if let Err(error) = template::placeholders(text) {
        fields.problem(KEY_FIELD, error.to_string());
    } else if has_other_braces(text) {
        let message = "only {job}, {execution_key} and placeholders in {{ }} are replaced; remove other braces";
        fields.problem(KEY_FIELD, message);
    }
    Some(text.to_owned())
}

fn has_other_braces(template: &str) -> bool {
    let (plain, after) = template.split_once("{{").unwrap_or((template, ""));
    let remaining = after.split_once("}}").map_or("", |(_, remaining)| remaining);
    plain.replace("{job}", "").replace("{execution_key}", "").contains(['{', '}'])
        || !remaining.is_empty() && has_other_braces(remaining)
}

/// Parses `labels`: texts by name.
pub(crate) fn labels(fields: &mut Fields<'_, '_, '_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some(mut inside) = fields.inside("labels", "labels.") else { return labels };
    for (name, at, value) in inside.all() {
        let problem = match value.as_str() {
            None => Some(format!("must be text in quotes, not {}", kind(value))),
            Some(_) if name.is_empty() => Some("a label needs a name".to_owned()),
            Some(_) if name == RESERVED_NAME => Some(UNREADABLE_NAME.to_owned()),
            Some(text) => text_problem(name, MAX_LABEL_NAME_BYTES)
                .map(|problem| format!("its name {problem}"))
                .or_else(|| text_problem(text, MAX_LABEL_BYTES)),
        };
        match problem {
            Some(problem) => inside.problem_at(at, name, problem),
            None => drop(labels.insert(name.to_owned(), value.as_str().unwrap_or("").to_owned())),
        }
    }
    if labels.len() > MAX_LABELS {
        let number = labels.len();
        fields.problem("labels", format!("holds {number} labels; {MAX_LABELS} at most"));
    }
    labels
}
