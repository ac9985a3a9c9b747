//! Reads the CronJobs of Kubernetes: manifests of one or several documents, and lists of them.
//!
//! What says when and by which policies becomes the job. What says how a container runs cannot: a
//! worker runs programs, so the program of the first container becomes the catalogue's entry, and
//! the remarks name what else its pod has, for the person who writes the entry.

mod fields;
mod pod;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::quoting::quoted;
use sexton_model::zone::Zone;

use super::names::{NameHints, Names};
use super::policies::{self, CronJobFields};
use super::yaml::{self, Value};
use super::{
    Entry, ImportError, ImportOutcome, LeftOut, MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES_BYTES, days,
    finish,
};
use fields::{Fields, texts};

/// What is true of every import.
const REMARKS: [&str; 3] = [
    "Each job runs as its CronJob does, with the defaults of Kubernetes where the manifest is silent. \
     The comments beside the fields say what is mostly better.",
    "On days on which clocks change, Kubernetes leaves a time of the day out that is not there, and runs \
     one that comes twice twice; a job runs once on each of them. `sexton cron lint -f` names the jobs that \
     this concerns.",
    "A worker runs programs, not images: the catalogue's entries name what the first container runs.",
];

/// The names that everybody's CronJobs have and that say nothing of them.
const MAX_LABELS: usize = 50;

/// Reads manifests one after the other; names are unique among all of them.
pub struct Import<'o> {
    service: Option<&'o str>,
    names: Names,
    outcome: ImportOutcome,
    bytes: usize,
}

impl<'o> Import<'o> {
    /// Nothing is read yet. `service` is the first part of the jobs' names; without it that is the
    /// namespace, or `k8s`.
    pub fn new(service: Option<&'o str>) -> Self {
        Self { service, names: Names::default(), outcome: ImportOutcome::default(), bytes: 0 }
    }

    /// Reads the text of `file`, a path or `-`.
    ///
    /// # Errors
    ///
    /// [`ImportError`] for texts that are too long or no YAML.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), ImportError> {
        self.bytes += text.len();
        if text.len() > MAX_FILE_BYTES {
            return Err(ImportError::TooLong(text.len()));
        }
        if self.bytes > MAX_FILES_BYTES {
            return Err(ImportError::TooLongTogether);
        }
        self.outcome.files.push(file.to_owned());
        let mut reader = Reader {
            file,
            service: self.service,
            names: &mut self.names,
            outcome: &mut self.outcome,
        };
        yaml::documents(text)?.iter().try_for_each(|document| reader.document(document))
    }

    /// What was read; each job is checked as it would be applied at `now`.
    pub fn finish(self, now: DateTime<Utc>) -> ImportOutcome {
        let mut outcome = self.outcome;
        let remarks = std::mem::take(&mut outcome.remarks);
        outcome.remarks.extend(REMARKS.map(str::to_owned));
        outcome.remarks.extend(remarks);
        finish(outcome, now)
    }
}

/// Reads the text of one file, and checks each job as it would be applied at `now`.
///
/// # Errors
///
/// [`ImportError`] if the text is too long or no YAML.
pub fn import(
    text: &str,
    service: Option<&str>,
    now: DateTime<Utc>,
) -> Result<ImportOutcome, ImportError> {
    let mut import = Import::new(service);
    import.add("-", text)?;
    Ok(import.finish(now))
}

struct Reader<'r> {
    file: &'r str,
    service: Option<&'r str>,
    names: &'r mut Names,
    outcome: &'r mut ImportOutcome,
}

impl Reader<'_> {
    fn document(&mut self, document: &Value) -> Result<(), ImportError> {
        let kind = document.get("kind").and_then(Value::text).unwrap_or_default();
        match kind {
            "List" | "CronJobList" => {
                for item in document.get("items").and_then(Value::list).unwrap_or_default() {
                    let own_kind = item.get("kind").and_then(Value::text);
                    // The items of a CronJobList need not repeat what they are.
                    match own_kind.unwrap_or(kind) {
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
        if self.outcome.remarks.len() < super::MAX_LEFT_OUT {
            let line = document.line;
            self.outcome.remarks.push(format!("Line {line}: {} is no CronJob", quoted(what)));
        }
    }

    fn cron_job(&mut self, document: &Value) -> Result<(), ImportError> {
        if self.outcome.entries.len() >= MAX_ENTRIES {
            return Err(ImportError::TooMany);
        }
        let metadata = Fields::new(document.get("metadata"), "metadata");
        let name = metadata.text("name").or_else(|| metadata.text("generateName"));
        let name = name.unwrap_or_default();
        let service = self.service.or_else(|| metadata.text("namespace")).unwrap_or("k8s");
        let mut problems = Vec::new();
        match self.entry(document, service, name, &mut problems) {
            Some(entry) if problems.is_empty() => self.outcome.entries.push(entry),
            _ => {
                let what = format!("CronJob {name}");
                let why = problems.join("; ");
                let place = (self.file, document.line);
                self.outcome.leave_out(LeftOut::new(place, true, &what, why));
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
        let spec = Fields::new(document.get("spec"), "spec");
        let job = Fields::new(
            spec.value("jobTemplate").and_then(|job| job.get("spec")),
            "spec.jobTemplate.spec",
        );
        let when = schedule(&spec, problems);
        let overlap = overlap(&spec, problems);
        let suspended = spec.boolean("suspend", problems).unwrap_or(false);
        let seconds = |count: u64| Duration::from_secs(count);
        let fields = CronJobFields {
            overlap,
            starting_deadline: spec.count("startingDeadlineSeconds", problems).map(seconds),
            backoff_limit: job.count("backoffLimit", problems),
            active_deadline: job.count("activeDeadlineSeconds", problems).map(seconds),
            restarts: pod::restarts(job.value("template")),
        };
        let (program, remarks) = pod::program(job.value("template"));
        let (schedule, zone) = when?;
        let ignored = spec
            .unknown(&[
                "schedule",
                "timeZone",
                "concurrencyPolicy",
                "startingDeadlineSeconds",
                "suspend",
                "jobTemplate",
                "successfulJobsHistoryLimit",
                "failedJobsHistoryLimit",
            ])
            .chain(job.unknown(&[
                "backoffLimit",
                "activeDeadlineSeconds",
                "template",
                "ttlSecondsAfterFinished",
            ]));
        for (line, field) in ignored {
            let why = "a job has no such thing; see what it is for";
            let what = format!("{name}: {field}");
            self.outcome.leave_out(LeftOut::new((self.file, line), false, &what, why));
        }
        let before = [Some(service), None];
        let name = self.names.unique(NameHints { before, word: name, marks: &[] });
        let days = days::kubernetes_days(&schedule);
        let period = policies::period(&schedule, days, zone, &name);
        Some(Entry {
            file: self.file.to_owned(),
            line: document.line,
            task: name.clone(),
            name,
            description: String::new(),
            schedule,
            zone,
            days,
            jitter: None,
            policies: policies::kubernetes_policies(fields, period),
            labels: labels(document),
            program,
            remarks,
            paused: suspended,
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
        None => None,
        Some("Allow") => Some("allow"),
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
    let pairs = labels.map(texts).unwrap_or_default();
    pairs
        .into_iter()
        .filter(|(name, text)| !name.is_empty() && name.len() <= 100 && text.len() <= 500)
        .filter(|(name, text)| !name.chars().chain(text.chars()).any(char::is_control))
        .take(MAX_LABELS)
        .collect()
}
