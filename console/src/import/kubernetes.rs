//! Reads the CronJobs of Kubernetes: manifests of one or several documents, and lists of them.
//!
//! What says when and by which policies becomes the job. What says how a container runs cannot: a
//! worker runs programs, so the program of the first container becomes the catalogue's entry, and
//! what else its pod has is named for whoever writes the entry.

mod fields;
mod pod;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::echo::quoted;
use sexton_model::zone::Zone;

use super::names::Names;
use super::yaml::{self, Value};
use super::{Entry, Imported, LeftOut, MAX_ENTRIES, MAX_FILE_BYTES, Refused, finish};
use fields::{Fields, named};

/// What Kubernetes does otherwise than a job without further fields.
const REMARKS: [&str; 2] = [
    "Otherwise than with Kubernetes, unless a job says so: an attempt ends after 1h (timeout), and a \
     firing that was missed is made up for within 24h (misfire).",
    "A worker runs programs, not images: the catalogue's entries name what the first container runs.",
];

/// The names that everybody's CronJobs have and that say nothing of them.
const MAX_LABELS: usize = 50;

/// Reads the text, and checks each job as it would be applied at `now`. `service` is the first part of
/// the jobs' names; without it that is the namespace, or `k8s`.
///
/// # Errors
///
/// [`Refused`] if the text is too long or no YAML.
pub fn import(text: &str, service: Option<&str>, now: DateTime<Utc>) -> Result<Imported, Refused> {
    if text.len() > MAX_FILE_BYTES {
        return Err(Refused::TooLong(text.len()));
    }
    let mut reader = Reader { service, names: Names::default(), imported: Imported::default() };
    for document in yaml::documents(text)? {
        reader.document(&document)?;
    }
    let mut imported = reader.imported;
    imported.remarks.extend(REMARKS.map(str::to_owned));
    Ok(finish(imported, now))
}

struct Reader<'o> {
    service: Option<&'o str>,
    names: Names,
    imported: Imported,
}

impl Reader<'_> {
    fn document(&mut self, document: &Value) -> Result<(), Refused> {
        let kind = document.get("kind").and_then(Value::text).unwrap_or_default();
        match kind {
            "List" | "CronJobList" => {
                for item in document.get("items").and_then(Value::list).unwrap_or_default() {
                    let own = item.get("kind").and_then(Value::text);
                    // The items of a CronJobList need not repeat what they are.
                    match own.unwrap_or(kind) {
                        "CronJob" | "CronJobList" => self.cron_job(item)?,
                        other => self.pass_over(item, other),
                    }
                }
            }
            "CronJob" => self.cron_job(document)?,
            other => self.pass_over(document, other),
        }
        Ok(())
    }

    /// Nothing that runs by itself at a time; said, and no loss.
    fn pass_over(&mut self, document: &Value, kind: &str) {
        let what = if kind.is_empty() { "a document without a kind" } else { kind };
        if self.imported.remarks.len() < super::MAX_LEFT_OUT {
            let line = document.line;
            self.imported.remarks.push(format!("Line {line}: {} is no CronJob", quoted(what)));
        }
    }

    fn cron_job(&mut self, document: &Value) -> Result<(), Refused> {
        if self.imported.entries.len() >= MAX_ENTRIES {
            return Err(Refused::TooMany);
        }
        let metadata = Fields::of(document.get("metadata"), "metadata");
        let name = metadata.text("name").or_else(|| metadata.text("generateName"));
        let name = name.unwrap_or_default();
        let service = self.service.or_else(|| metadata.text("namespace")).unwrap_or("k8s");
        let mut problems = Vec::new();
        match self.entry(document, service, name, &mut problems) {
            Some(entry) if problems.is_empty() => self.imported.entries.push(entry),
            _ => {
                let what = format!("CronJob {name}");
                let why = problems.join("; ");
                self.imported.leave_out(LeftOut::new(document.line, true, &what, why));
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        document: &Value,
        service: &str,
        name: &str,
        problems: &mut Vec<String>,
    ) -> Option<Entry> {
        let spec = Fields::of(document.get("spec"), "spec");
        let job = Fields::of(
            spec.value("jobTemplate").and_then(|job| job.get("spec")),
            "spec.jobTemplate.spec",
        );
        let when = schedule(&spec, problems);
        let overlap = overlap(&spec, problems);
        let suspended = spec.boolean("suspend", problems).unwrap_or(false);
        let seconds = |count: u64| Duration::from_secs(count);
        let window = spec.count("startingDeadlineSeconds", problems).map(seconds);
        let max_retries = job.count("backoffLimit", problems);
        let timeout = job.count("activeDeadlineSeconds", problems).map(seconds);
        let (program, mut remarks) = pod::program(job.value("template"));
        let (schedule, zone) = when?;
        let lost = spec
            .others(&[
                "schedule",
                "timeZone",
                "concurrencyPolicy",
                "startingDeadlineSeconds",
                "suspend",
                "jobTemplate",
                "successfulJobsHistoryLimit",
                "failedJobsHistoryLimit",
            ])
            .chain(job.others(&[
                "backoffLimit",
                "activeDeadlineSeconds",
                "template",
                "ttlSecondsAfterFinished",
            ]));
        for (line, field) in lost {
            let why = "a job has no such thing; see what it is for";
            self.imported.leave_out(LeftOut::new(line, false, &format!("{name}: {field}"), why));
        }
        if timeout.is_some() {
            remarks.push(
                "activeDeadlineSeconds is over all tries there; timeout is for each attempt"
                    .to_owned(),
            );
        }
        let name = self.names.unique(service, name);
        if suspended {
            let why = "it is suspended, so its job is written as a comment";
            self.imported.leave_out(LeftOut::new(document.line, true, &name, why));
        }
        Some(Entry {
            line: document.line,
            task: name.clone(),
            name,
            description: String::new(),
            schedule,
            zone,
            overlap,
            misfire_window: window,
            max_retries,
            timeout,
            labels: labels(document),
            program,
            remarks,
            suspended,
        })
    }
}

fn schedule(spec: &Fields<'_>, problems: &mut Vec<String>) -> Option<(String, Zone)> {
    let Some(text) = spec.text("schedule") else {
        problems.push("spec.schedule is missing".to_owned());
        return None;
    };
    // Older clusters took the zone in front of the fields.
    let prefixed = ["CRON_TZ=", "TZ="].iter().find_map(|prefix| text.strip_prefix(prefix));
    let (inside, fields) = match prefixed.and_then(|rest| rest.split_once([' ', '\t'])) {
        Some((zone, fields)) => (Some(zone), fields.trim()),
        None => (None, text.trim()),
    };
    let zone = match spec.text("timeZone").or(inside) {
        None => Ok(Zone::UTC),
        Some(name) => Zone::parse(name),
    };
    match zone {
        Ok(zone) => Some((fields.to_owned(), zone)),
        Err(error) => {
            problems.push(format!("spec.timeZone: {error}"));
            None
        }
    }
}

fn overlap(spec: &Fields<'_>, problems: &mut Vec<String>) -> Option<&'static str> {
    match spec.text("concurrencyPolicy") {
        None | Some("Allow") => None,
        Some("Forbid") => Some("skip"),
        Some("Replace") => Some("replace"),
        Some(other) => {
            let words = "Allow, Forbid or Replace";
            problems.push(format!("spec.concurrencyPolicy: {} is not {words}", quoted(other)));
            None
        }
    }
}

/// Those that a job may have, too.
fn labels(document: &Value) -> BTreeMap<String, String> {
    let labels = document.get("metadata").and_then(|metadata| metadata.get("labels"));
    let pairs = labels.map(named).unwrap_or_default();
    pairs
        .into_iter()
        .filter(|(name, text)| !name.is_empty() && name.len() <= 100 && text.len() <= 500)
        .filter(|(name, text)| !name.chars().chain(text.chars()).any(char::is_control))
        .take(MAX_LABELS)
        .collect()
}
