//! Jobs written as a jobs file: the inverse of its reader.

use std::fmt::Write as _;

use serde_json::Value;
use sexton_model::duration;
use sexton_model::job::{JobSpec, MisfirePolicy, RetryOverrides, Schedule};

/// The file that holds these jobs.
pub(crate) fn jobs_file(jobs: &[JobSpec]) -> String {
    jobs.iter().map(job).collect()
}

fn job(job: &JobSpec) -> String {
    let mut lines = vec!["[[job]]".to_owned()];
    let mut text = |name: &str, value: &str| lines.push(format!("{name} = {}", quoted(value)));
    text("name", &job.name);
    text("task", &job.task_type);
    text("description", &job.description);
    text("pool", job.pool.as_str());
    text("overlap", job.overlap.as_str());
    text("timeout", &duration::format(job.timeout));
    match job.schedule.to_columns() {
        ("cron", Some(expression)) => text("schedule", &expression),
        ("every", Some(expression)) => {
            let (period, phase) = expression.split_once('+').unwrap_or((&expression, "0s"));
            text("every", period);
            text("phase", phase);
        }
        ("once", Some(at)) => {
            text("at", &at);
            text("past", job.past.as_str());
        }
        _ => assert_eq!(job.schedule, Schedule::None),
    }
    text("timezone", job.timezone.name());
    if matches!(job.schedule, Schedule::Cron { .. }) {
        text("dst", job.dst.as_str());
        if let Some(days) = job.days {
            text("days", days.as_str());
        }
    }
    for (name, value) in [("target", &job.target), ("idempotency_key", &job.idempotency_template)] {
        if let Some(value) = value {
            text(name, value);
        }
    }
    for (name, value) in [("start", job.constraints.start), ("end", job.constraints.end)] {
        if let Some(value) = value {
            text(name, &value.to_string());
        }
    }
    let spans = [
        ("jitter", job.constraints.jitter),
        ("lease", job.lease),
        ("start_within", job.expectations.start_within),
        ("expect_within", job.expectations.expect_within),
        ("max_runtime", job.expectations.max_runtime),
        ("remind_every", job.expectations.remind_every),
        ("stale_after", job.stale_after),
    ];
    for (name, value) in spans {
        if let Some(value) = value {
            text(name, &duration::format(value));
        }
    }
    for (name, number) in [
        ("alert_after", job.expectations.alert_after),
        ("recover_after", job.expectations.recover_after),
    ] {
        if let Some(number) = number {
            lines.push(format!("{name} = {number}"));
        }
    }
    if let Some(severity) = job.expectations.severity {
        lines.push(format!("severity = {}", quoted(severity.as_str())));
    }
    if let Some(most) = job.constraints.max_runs {
        lines.push(format!("max_runs = {most}"));
    }
    if !job.constraints.exclude.is_empty() {
        let days: Vec<_> =
            job.constraints.exclude.to_texts().iter().map(|days| quoted(days)).collect();
        lines.push(format!("exclude = [{}]", days.join(", ")));
    }
    if let Some(number) = job.lock_key {
        lines.push(format!("lock_key = {number}"));
    }
    lines.push(format!("misfire = {}", misfire(job)));
    lines.push(format!("retry = {}", retry(&job.retry)));
    let labels = job.labels.iter().map(|(name, text)| (name.as_str(), quoted(text)));
    lines.push(format!("labels = {}", table(labels)));
    lines.push(format!("params = {}", value(&job.params)));
    lines.join("\n") + "\n"
}

fn misfire(job: &JobSpec) -> String {
    let window = quoted(&duration::format(job.misfire.window));
    let policy = quoted(job.misfire.policy.as_str());
    let mut fields = vec![("policy", policy), ("window", window)];
    if job.misfire.policy == MisfirePolicy::FireAll {
        fields.push(("limit", job.misfire.limit.to_string()));
        if let Some(rate) = job.misfire.rate {
            fields.push(("rate", quoted(&rate.to_string())));
        }
    }
    table(fields)
}

/// The table of retry settings.
pub(crate) fn retry(retry: &RetryOverrides) -> String {
    let mut fields = Vec::new();
    fields.extend(retry.max_retries.map(|number| ("max_retries", number.to_string())));
    fields.extend(retry.max_timeouts.map(|number| ("max_timeouts", number.to_string())));
    fields.extend(retry.max_crashes.map(|number| ("max_crashes", number.to_string())));
    fields.extend(retry.delay.map(|delay| ("delay", quoted(&duration::format(delay)))));
    fields.extend(retry.multiplier.map(|factor| ("multiplier", float(factor))));
    fields.extend(retry.max_delay.map(|delay| ("max_delay", quoted(&duration::format(delay)))));
    fields.extend(retry.jitter.map(|jitter| ("jitter", float(jitter))));
    let classes = |classes: &Vec<String>| {
        let classes: Vec<String> = classes.iter().map(|class| quoted(class)).collect();
        format!("[{}]", classes.join(", "))
    };
    fields.extend(retry.permanent.as_ref().map(|list| ("permanent", classes(list))));
    table(fields)
}

fn value(of: &Value) -> String {
    match of {
        // TOML has none, so a jobs file makes none.
        Value::Null => panic!("a null came out of TOML"),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.to_string(),
            None => float(number.as_f64().expect("a number is one of the two")),
        },
        Value::String(text) => quoted(text),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(value).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            table(fields.iter().map(|(name, inside)| (name.as_str(), value(inside))))
        }
    }
}

fn float(number: f64) -> String {
    // Debug always writes a point or an exponent.
    format!("{number:?}")
}

fn table<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let fields: Vec<_> =
        fields.into_iter().map(|(name, value)| format!("{} = {value}", quoted(name))).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// A basic string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            c if c.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
