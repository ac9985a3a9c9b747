//! Parses one `[[flow]]` table: the members of the flow that each execution of a job begins.

use std::collections::HashMap;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, kind};
use super::params::{Texts, read_object};
use super::problem::Report;
use crate::flow::{MAX_JOB_MEMBERS, Member, OnDiscard, RunsWhen, check_members};
use crate::job::{JobSpec, check_name};
use crate::quoting::quoted;
use crate::template::{Placeholder, placeholders};

/// Reads the flows of a file, and gives each to its job.
pub(super) fn read_all(document: &DeTable<'_>, jobs: &mut [JobSpec], report: &mut Report<'_>) {
    let Some(value) = document.get("flow") else { return };
    let Some(tables) = tables(value, "flow", None, report) else { return };
    let mut places: HashMap<String, usize> =
        jobs.iter().enumerate().map(|(place, job)| (job.name.clone(), place)).collect();
    for (at, table) in tables {
        let job = table.get("job").and_then(|job| job.get_ref().as_str());
        let members = read(table, at, job, report);
        let mut fields = Fields::of_flow(table, at, job, report);
        fields.report_unknown_fields(&["job", "member"], &[], &[]);
        let Some(job) = fields.text("job", usize::MAX) else {
            if !fields.has("job") {
                fields.problem("job", "is missing; name the job whose executions begin the flow");
            }
            continue;
        };
        if let Some(place) = places.remove(job) {
            jobs[place].flow = members;
        } else {
            let message = "is no job of this file, or has a flow already; a flow stands in the file of its job";
            fields.problem("job", format!("{} {message}", quoted(job)));
        }
    }
}

/// Returns the tables of an array, with their places.
fn tables<'a>(
    value: &'a Spanned<DeValue<'a>>,
    field: &str,
    job: Option<&str>,
    report: &mut Report<'_>,
) -> Option<Vec<(usize, &'a DeTable<'a>)>> {
    let mut wrong = |at: usize, value: &DeValue<'_>| {
        let message = format!("is {}; write [[{field}]] before each", kind(value));
        report.add(Some(at), job, Some(field), message);
    };
    let Some(values) = value.get_ref().as_array() else {
        wrong(value.span().start, value.get_ref());
        return None;
    };
    let mut tables = Vec::with_capacity(values.len());
    for value in values {
        match value.get_ref() {
            DeValue::Table(table) => tables.push((value.span().start, table)),
            other => wrong(value.span().start, other),
        }
    }
    Some(tables)
}

fn read(table: &DeTable<'_>, at: usize, job: Option<&str>, report: &mut Report<'_>) -> Vec<Member> {
    let Some(value) = table.get("member") else {
        let message = "is missing; write [[flow.member]] before each member";
        report.add(Some(at), job, Some("flow.member"), message);
        return Vec::new();
    };
    let Some(tables) = tables(value, "flow.member", job, report) else { return Vec::new() };
    if tables.len() > MAX_JOB_MEMBERS {
        let message = format!("has {} members; {MAX_JOB_MEMBERS} at most", tables.len());
        report.add(Some(at), job, Some("flow.member"), message);
        return Vec::new();
    }
    let before = report.count();
    let places: Vec<usize> = tables.iter().map(|(at, _)| *at).collect();
    let members: Vec<Member> = tables
        .into_iter()
        .filter_map(|(at, table)| member(&mut Fields::of_flow(table, at, job, report)))
        .collect();
    // Names that are missing because of a problem would be problems of others.
    if report.count() == before {
        for (place, message) in check_members(&members) {
            report.add(places.get(place).copied(), job, Some("flow.member"), message);
        }
    }
    members
}

fn member(fields: &mut Fields<'_, '_, '_>) -> Option<Member> {
    let before = fields.problems();
    let mut name = |field: &str| {
        if !fields.has(field) {
            fields.problem(field, "is missing; every member needs one");
        }
        fields.text(field, usize::MAX).map(str::to_owned).unwrap_or_default()
    };
    let (name, job) = (name("name"), name("job"));
    if fields.problems() == before
        && let Err(error) = check_name(&job)
    {
        fields.problem("job", error.to_string());
    }
    let object = |value| match value {
        Value::Object(object) => object,
        _ => serde_json::Map::new(),
    };
    let params = object(read_object(fields, "params", "params.", Texts::Plain));
    let results = object(read_object(fields, "results", "results.", Texts::Templates));
    let member = Member {
        name,
        job,
        params,
        results,
        after: after(fields),
        runs_when: fields
            .choice("when", RunsWhen::parse, &["all_succeeded", "all_done", "any_failed"], &[])
            .unwrap_or_default(),
        on_discard: fields
            .choice("on_discard", OnDiscard::parse, &["skip", "run", "cancel"], &[])
            .unwrap_or_default(),
    };
    check_results(fields, &member, &Value::Object(member.results.clone()));
    fields.report_unknown_fields(
        &["name", "job", "params", "results", "after", "when", "on_discard"],
        &[],
        &[("needs", "write after = […]"), ("depends_on", "write after = […]")],
    );
    (fields.problems() == before).then_some(member)
}

fn after(fields: &mut Fields<'_, '_, '_>) -> Vec<String> {
    let Some(value) = fields.raw("after") else { return Vec::new() };
    let names: Option<Vec<String>> = value.get_ref().as_array().and_then(|values| {
        values.iter().map(|value| value.get_ref().as_str().map(str::to_owned)).collect()
    });
    if names.is_none() {
        fields.problem("after", "must be a list of the names of members, each in quotes");
    }
    names.unwrap_or_default()
}

/// Refuses placeholders that no end of an upstream member fills.
fn check_results(fields: &mut Fields<'_, '_, '_>, member: &Member, value: &Value) {
    match value {
        Value::String(text) => {
            for one in placeholders(text).unwrap_or_default() {
                match one {
                    Placeholder::Upstream { member: name, .. }
                        if !member.after.iter().any(|after| after == name) =>
                    {
                        let message = format!(
                            "names a result of {}, which after does not name",
                            quoted(name)
                        );
                        fields.problem("results", message);
                    }
                    Placeholder::Upstream { .. } | Placeholder::Braces => {}
                    _ => {
                        let message = "may name upstream.NAME.result alone; the job's own params may name the others";
                        fields.problem("results", message);
                    }
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|one| check_results(fields, member, one)),
        Value::Object(map) => map.values().for_each(|one| check_results(fields, member, one)),
        _ => {}
    }
}
