//! What the loops that judge monitors of jobs and of checks share: a round, and what becomes of its judgements.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::incident::{Severity, SubjectKind};
use sexton_model::monitor::Change;
use sexton_store::incidents::Occurrence;
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, StoreError};
use uuid::Uuid;

use crate::adaptive_batch::AdaptiveBatch;
use crate::background_loop::{LoopError, Pause, QUERY_TIMEOUT};

/// Monitors in one round.
pub(super) const MAX_BATCH_MONITORS: usize = 500;
/// Wake-ups that one round takes.
const MAX_BATCH_WAKEUPS: i64 = 5_000;
/// When a monitor that this version cannot read is looked at again. It is left to a scheduler of that version, and holds up no other.
pub(super) const UNREADABLE_PAUSE: TimeDelta = TimeDelta::minutes(1);
/// Longest pause between two looks for wake-ups.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MonitorReport {
    /// Monitors that were judged.
    pub judged: usize,
    /// Monitors that added to an incident, or opened one.
    pub violated: usize,
    /// Monitors whose incident is over.
    pub recovered: usize,
    /// Time until the next monitor is due; `None`: after an event.
    pub next: Option<Duration>,
    /// Whether there is more to do at once.
    pub more: bool,
}

/// Monitors of one kind.
pub(super) trait Monitors {
    /// Makes the monitors due that something has happened to. Returns how many wake-ups it took.
    fn take_wakeups(
        &self,
        limit: i64,
        now: Now,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Judges the monitors that are due, at most `limit`, and writes what was found.
    fn judge(
        &self,
        limit: usize,
        now: Now,
    ) -> impl Future<Output = Result<MonitorReport, LoopError>> + Send;

    /// Returns the time until the next monitor is due; `None`: none before an event.
    fn next_due(
        &self,
        now: Now,
    ) -> impl Future<Output = Result<Option<Duration>, StoreError>> + Send;
}

/// Runs a round. `batch` is smaller after one that was not written in time: many incidents at once must not keep each other from opening.
pub(super) async fn run(
    monitors: &(impl Monitors + Sync),
    batch: &AdaptiveBatch,
    now: Now,
) -> Result<MonitorReport, LoopError> {
    let taking = monitors.take_wakeups(MAX_BATCH_WAKEUPS, now);
    let woken = with_timeout(QUERY_TIMEOUT, taking).await?;
    let limit = batch.size();
    let mut report = match monitors.judge(limit, now).await {
        Ok(report) => report,
        Err(error) => {
            batch.shrink(limit);
            return Err(error);
        }
    };
    batch.grow(report.judged);
    report.more = report.judged >= limit || woken >= MAX_BATCH_WAKEUPS.unsigned_abs();
    if !report.more {
        report.next = with_timeout(QUERY_TIMEOUT, monitors.next_due(now)).await?;
    }
    Ok(report)
}

/// Returns the pause after a round.
pub(super) fn pause(report: &MonitorReport) -> Pause {
    if report.more {
        return Pause::AtMost(Duration::ZERO);
    }
    Pause::AtMost(report.next.map_or(POLL_INTERVAL, |next| next.min(POLL_INTERVAL)))
}

/// Whom an incident of a monitor is about.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) kind: SubjectKind,
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) severity: Option<Severity>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) remind_every_ms: Option<i64>,
}

/// What the judgements of a round come to; `M`: what a monitor remembers.
#[derive(Debug)]
pub(super) struct Findings<M> {
    /// What each monitor remembers, and when it is due again.
    pub(super) checked: Vec<(Uuid, M, Option<DateTime<Utc>>)>,
    pub(super) occurrences: Vec<Occurrence>,
    pub(super) recovered: Vec<(SubjectKind, String, String)>,
}

impl<M> Default for Findings<M> {
    fn default() -> Self {
        Self { checked: Vec::new(), occurrences: Vec::new(), recovered: Vec::new() }
    }
}

impl<M> Findings<M> {
    /// Adds what a judgement found.
    pub(super) fn add(&mut self, subject: Subject, change: Option<Change>) {
        let Subject { kind: subject_kind, id, name, severity, labels, remind_every_ms } = subject;
        match change {
            None => {}
            Some(Change::Recovered { detail }) => {
                self.recovered.push((subject_kind, id.to_string(), detail));
            }
            Some(Change::Violated { cause, detail, execution, occurrences }) => {
                self.occurrences.push(Occurrence {
                    subject_kind,
                    subject: id.to_string(),
                    name,
                    cause: cause.as_str().to_owned(),
                    severity: severity.unwrap_or_default(),
                    labels,
                    detail,
                    job: (subject_kind == SubjectKind::Job).then_some(id),
                    execution,
                    occurrences,
                    remind_every_ms,
                });
            }
        }
    }

    /// Logs what was found, once it is written.
    pub(super) fn log(&self) {
        for occurrence in &self.occurrences {
            let first = occurrence.detail.lines().next().unwrap_or_default();
            let (kind, name) = (occurrence.subject_kind.as_str(), &occurrence.name);
            tracing::warn!(incident.cause = occurrence.cause, "{kind} {name}: {first}");
        }
    }

    pub(super) fn report(&self, judged: usize) -> MonitorReport {
        let (violated, recovered) = (self.occurrences.len(), self.recovered.len());
        MonitorReport { judged, violated, recovered, ..MonitorReport::default() }
    }
}
