//! Notifications: what a channel is sent about an incident, whether it is still needed, and when it is tried again.

mod judgement;
mod retry;
mod state;

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::incident::{IncidentState, NotificationKind, Severity, SubjectKind};
use crate::remedy::section_of;

pub use judgement::{DropReason, Standing, Verdict, judge};
pub use retry::{FAILURES_OF_A_FAILING_CHANNEL, GIVE_UP_AFTER, RETRY_AFTER_MAX, backoff, retry_in};
pub use state::NotificationState;

/// Messages that a channel receives one by one within [`DIGEST_WINDOW_S`]; further ones are joined to a digest.
pub const MAX_SINGLES: usize = 20;
/// The time in which they are counted, and between two digests, in seconds.
pub const DIGEST_WINDOW_S: i64 = 300;
/// Maximum number of notifications in one digest.
pub const MAX_DIGEST: usize = 5_000;
/// Maximum number of names that a digest lists.
pub const MAX_DIGEST_NAMES: usize = 20;
/// Maximum number of alerts in one request to an Alertmanager.
pub const MAX_ALERTS: usize = 100;
/// The label of a job whose value a message shows as the link to its runbook.
pub const RUNBOOK_LABEL: &str = "runbook";

/// A message about one incident, or a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The notification's id, the same over retries.
    pub id: Uuid,
    /// What it reports.
    pub kind: NotificationKind,
    /// In words.
    pub detail: String,
    /// When the notification was written.
    pub created_at: DateTime<Utc>,
    /// The first message of the incident to this channel, if it is another one.
    pub thread: Option<Uuid>,
    /// The incident; `None`: a test.
    pub incident: Option<Incident>,
}

/// What a message says of its incident.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the schema comments every column")]
pub struct Incident {
    pub id: Uuid,
    pub subject_kind: SubjectKind,
    pub name: String,
    pub cause: String,
    pub severity: Severity,
    pub labels: BTreeMap<String, String>,
    pub detail: String,
    pub job_id: Option<Uuid>,
    pub execution_id: Option<Uuid>,
    pub state: IncidentState,
    pub occurrences: i32,
    pub opened_at: DateTime<Utc>,
    pub acknowledged_by: Option<String>,
    pub resolved_at: Option<DateTime<Utc>>,
}

impl Message {
    /// Returns the headline: `OPENED high: billing.run failed`.
    pub fn title(&self) -> String {
        let Some(incident) = &self.incident else {
            return "TEST: Sexton can send to this channel".to_owned();
        };
        let kind = self.kind.as_str().to_uppercase();
        let (severity, name) = (incident.severity.as_str(), &incident.name);
        one_line(&format!("{kind} {severity}: {name} {}", words(&incident.cause)))
    }

    /// Returns the text: what the notification says, or else its incident.
    pub fn text(&self) -> &str {
        let of_incident = self.incident.as_ref().map_or("", |incident| &incident.detail);
        if self.detail.is_empty() { of_incident } else { &self.detail }
    }
}

impl Incident {
    /// Returns the section of the documents about it.
    pub fn what_to_do(&self) -> &'static str {
        section_of(self.subject_kind, &self.cause)
    }

    /// Returns the text of the job's label `runbook`.
    pub fn runbook(&self) -> Option<&str> {
        self.labels.get(RUNBOOK_LABEL).map(String::as_str).filter(|text| !text.is_empty())
    }
}

/// One message instead of many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digest {
    /// Its id, the same over retries.
    pub id: Uuid,
    /// Number of notifications.
    pub count: usize,
    /// Their numbers by kind of notification, kind of subject, cause and severity, the largest first.
    pub groups: Vec<DigestGroup>,
    /// The first names of incidents, each once.
    pub names: Vec<String>,
    /// Number of further names.
    pub more_names: usize,
    /// When the first of the notifications was written.
    pub since: DateTime<Utc>,
}

/// The notifications of a digest that are alike.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct DigestGroup {
    pub kind: NotificationKind,
    pub subject_kind: SubjectKind,
    pub cause: String,
    pub severity: Severity,
    pub count: usize,
}

impl DigestGroup {
    /// Returns the section of the documents about these incidents.
    pub fn what_to_do(&self) -> &'static str {
        section_of(self.subject_kind, &self.cause)
    }
}

impl Digest {
    /// Joins messages, in their order.
    pub fn new(id: Uuid, messages: &[Message]) -> Self {
        let mut groups: BTreeMap<(NotificationKind, SubjectKind, &str, Severity), usize> =
            BTreeMap::new();
        let (mut names, mut seen) = (Vec::new(), HashSet::new());
        for message in messages {
            let Some(incident) = &message.incident else { continue };
            let Incident { subject_kind, cause, severity, .. } = incident;
            *groups.entry((message.kind, *subject_kind, cause, *severity)).or_default() += 1;
            if seen.insert(&incident.name) && names.len() < MAX_DIGEST_NAMES {
                names.push(incident.name.clone());
            }
        }
        let more_names = seen.len() - names.len();
        let mut groups: Vec<DigestGroup> = groups
            .into_iter()
            .map(|((kind, subject_kind, cause, severity), count)| DigestGroup {
                kind,
                subject_kind,
                cause: cause.to_owned(),
                severity,
                count,
            })
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse((group.count, group.severity)));
        let since = messages.iter().map(|message| message.created_at).min().unwrap_or_default();
        Self { id, count: messages.len(), groups, names, more_names, since }
    }

    /// Returns the headline: `980 notifications`.
    pub fn title(&self) -> String {
        format!(
            "{} notifications about {} subjects",
            self.count,
            self.names.len() + self.more_names
        )
    }

    /// Returns the text, a line for each group and one with names.
    pub fn text(&self) -> String {
        let line = |group: &DigestGroup| {
            let (kind, severity) = (group.kind.as_str(), group.severity.as_str());
            let (cause, section) = (one_line(&words(&group.cause)), group.what_to_do());
            format!("{} × {kind} {severity}: {cause}, see {section}\n", group.count)
        };
        let groups: String = self.groups.iter().take(MAX_DIGEST_NAMES).map(line).collect();
        let names = self.names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ");
        let more = match self.more_names {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{groups}\n{names}{more}\n\n`sexton incidents list` shows all of them.\n")
    }
}

/// Returns a cause for people.
fn words(cause: &str) -> String {
    cause.replace('_', " ")
}

/// Returns a text with each control character and line break as a blank.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: usize, cause: &str, severity: Severity) -> Message {
        let incident = Incident {
            id: Uuid::nil(),
            subject_kind: SubjectKind::Job,
            name: format!("job.{number}"),
            cause: cause.to_owned(),
            severity,
            labels: BTreeMap::new(),
            detail: String::new(),
            job_id: None,
            execution_id: None,
            state: IncidentState::Open,
            occurrences: 1,
            opened_at: DateTime::UNIX_EPOCH,
            acknowledged_by: None,
            resolved_at: None,
        };
        Message {
            id: Uuid::nil(),
            kind: NotificationKind::Opened,
            detail: String::new(),
            created_at: DateTime::UNIX_EPOCH,
            thread: None,
            incident: Some(incident),
        }
    }

    #[test]
    fn a_digest_counts_by_cause_and_severity_and_names_the_first() {
        let mut messages: Vec<Message> =
            (0..30).map(|number| message(number, "failed", Severity::High)).collect();
        messages.extend((0..40).map(|number| message(number, "too_long", Severity::Low)));
        let digest = Digest::new(Uuid::nil(), &messages);
        assert_eq!(digest.title(), "70 notifications about 40 subjects");
        assert_eq!((digest.names.len(), digest.more_names), (20, 20));
        let text = digest.text();
        assert!(
            text.starts_with(
                "40 × opened low: too long, see docs/operations/incidents.md#too_long\n\
                 30 × opened high: failed, see docs/operations/incidents.md#failed\n"
            ),
            "{text}"
        );
        assert!(text.contains("job.19 and 20 more"), "{text}");
    }

    #[test]
    fn a_digest_tells_jobs_from_foreign_jobs_that_fail_alike() {
        let mut foreign = message(2, "failed", Severity::High);
        foreign.incident.as_mut().unwrap().subject_kind = SubjectKind::Check;
        let messages = [message(1, "failed", Severity::High), foreign];
        let sections: Vec<&str> = Digest::new(Uuid::nil(), &messages)
            .groups
            .iter()
            .map(DigestGroup::what_to_do)
            .collect();
        let page = "docs/operations/incidents.md";
        assert_eq!(sections, [format!("{page}#failed"), format!("{page}#check-failed")]);
    }

    #[test]
    fn a_headline_is_one_line() {
        let mut message = message(1, "never_ran", Severity::Medium);
        message.incident.as_mut().unwrap().name = "a\r\nBcc: b".to_owned();
        assert_eq!(message.title(), "OPENED medium: a  Bcc: b never ran");
    }
}
