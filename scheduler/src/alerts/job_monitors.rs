//! Checks the monitors of jobs when a time limit may have been missed, or something has happened.
//!
//! Every scheduler checks. Each takes other monitors, since those that are due are locked by who takes them, so more
//! schedulers check more. What is found, the incidents, and what is sent about them are written in one transaction with
//! what the monitors remember: a crash in between leaves the monitors due, and nothing is found twice. All instants are
//! of the database's clock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

use sexton_model::incident::SubjectKind;
use sexton_model::job::Expectations;
use sexton_model::monitor::{MonitorMemory, MonitoredJob, NextFiring, judge};
use sexton_store::incidents::Occurrence;
use sexton_store::monitors::{JobRow, LastAttempt, MonitorCheck, next_due, take_wakeups};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError};
use uuid::Uuid;

use super::monitor_round::{
    self, Findings, MAX_BATCH_MONITORS, MonitorReport, Monitors, Subject, UNREADABLE_PAUSE,
};
use crate::adaptive_batch::AdaptiveBatch;
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// The loop that checks monitors of jobs.
#[derive(Debug)]
pub struct JobMonitors {
    store: Store,
    batch: AdaptiveBatch,
}

impl JobMonitors {
    /// Creates the loop, whose first round runs at once.
    pub const fn new(store: Store) -> Self {
        Self { store, batch: AdaptiveBatch::with_max(MAX_BATCH_MONITORS) }
    }
}

impl Monitors for JobMonitors {
    async fn take_wakeups(&self, limit: i64, now: Now) -> Result<u64, StoreError> {
        take_wakeups(&self.store, limit, now).await
    }

    async fn judge(&self, limit: usize, now: Now) -> Result<MonitorReport, LoopError> {
        let mut check =
            with_timeout(QUERY_TIMEOUT, MonitorCheck::begin(&self.store, limit as i64, now))
                .await?;
        let Some(now) = check.due.first().map(|monitor| monitor.now) else {
            return Ok(MonitorReport::default());
        };
        let rows = with_timeout(QUERY_TIMEOUT, check.read_jobs()).await?;
        let jobs = rows.into_iter().filter_map(|row| {
            let expectations = row.expectations().ok()?;
            Some((row.id, (row, expectations)))
        });
        let jobs: HashMap<Uuid, (JobRow, Expectations)> = jobs.collect();
        let limited = jobs.iter().filter(|(_, (_, expectations))| expectations.has_time_limit());
        let limited: HashSet<Uuid> = limited.map(|(id, _)| *id).collect();
        let mut executions = with_timeout(QUERY_TIMEOUT, check.read_executions(&limited)).await?;
        let mut gaps = with_timeout(QUERY_TIMEOUT, check.read_gaps()).await?;
        let mut findings: Findings<MonitorMemory> = Findings::default();
        for monitor in &check.due {
            let executions = executions.remove(&monitor.job).unwrap_or_else(|| Some(Vec::new()));
            let (Some((row, expectations)), Some(executions)) =
                (jobs.get(&monitor.job), executions)
            else {
                tracing::warn!(job.id = %monitor.job, "this version cannot read what a job's monitor needs");
                let later = Some(now + UNREADABLE_PAUSE);
                findings.checked.push((monitor.job, monitor.memory.clone(), later));
                continue;
            };
            let mut memory = monitor.memory.clone();
            memory.is_open = row.is_open;
            let mut job = monitored(row, expectations.clone());
            job.executions = executions;
            job.gaps = gaps.remove(&monitor.job).unwrap_or_default();
            let judged = judge(&job, &memory, now);
            findings.checked.push((row.id, judged.memory, judged.next_check));
            let subject = Subject {
                kind: SubjectKind::Job,
                id: row.id,
                name: row.name.clone(),
                severity: expectations.severity,
                labels: labels(row),
                remind_every_ms: row.remind_every_ms,
            };
            findings.add(subject, judged.change);
        }
        let causes: Vec<Uuid> =
            findings.occurrences.iter().filter_map(|occurrence| occurrence.execution).collect();
        if !causes.is_empty() {
            let attempts = with_timeout(QUERY_TIMEOUT, check.read_last_attempts(&causes)).await?;
            describe_attempts(&mut findings.occurrences, &attempts);
        }
        let judged = check.due.len();
        let Findings { checked, occurrences, recovered } = &findings;
        with_timeout(QUERY_TIMEOUT, check.finish(checked, occurrences, recovered, now)).await?;
        findings.log();
        Ok(findings.report(judged))
    }

    async fn next_due(&self, now: Now) -> Result<Option<Duration>, StoreError> {
        next_due(&self.store, now).await
    }
}

/// Adds to each occurrence where its execution ran last, how that ended, and what it wrote last.
fn describe_attempts(occurrences: &mut [Occurrence], attempts: &HashMap<Uuid, LastAttempt>) {
    for occurrence in occurrences {
        let attempt = occurrence.execution.and_then(|id| attempts.get(&id));
        if let Some(attempt) = attempt {
            occurrence.detail.push_str(&describe(attempt));
        }
    }
}

fn describe(attempt: &LastAttempt) -> String {
    let worker = attempt.worker.as_deref().unwrap_or("a worker that is forgotten");
    let mut text = format!("\nAttempt {} on {worker}", attempt.number);
    // Writing to a text cannot fail.
    let _ = match &attempt.outcome {
        Some(outcome) => write!(text, ": {outcome}"),
        None => write!(text, " runs"),
    };
    if let Some(signal) = attempt.signal {
        let _ = write!(text, ", ended by signal {signal}");
    } else if let Some(code) = attempt.exit_code {
        let _ = write!(text, ", exit code {code}");
    }
    if !attempt.output.trim().is_empty() {
        let _ = write!(text, "\nLast output:\n{}", attempt.output.trim_end());
    }
    text
}

fn monitored(row: &JobRow, expectations: Expectations) -> MonitoredJob {
    let is_deleted = row.deleted_at.is_some();
    MonitoredJob {
        expectations,
        is_active: row.status == "active" && !is_deleted,
        is_deleted,
        has_begun: row.has_begun,
        is_scheduled: row.schedule_kind != "none",
        next_firing: row
            .next_fire_at
            .map(|due| NextFiring { nominal: row.next_nominal_at.unwrap_or(due), due }),
        changed_at: row.updated_at,
        planner_seen_at: row.planner_seen_at,
        executions: Vec::new(),
        gaps: Vec::new(),
    }
}

fn labels(row: &JobRow) -> BTreeMap<String, String> {
    let labels = row.labels.as_object().into_iter().flatten();
    labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

impl BackgroundLoop for JobMonitors {
    const NAME: &'static str = "job_monitors";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(1);
    type Report = MonitorReport;

    async fn run_once(&self, now: Now) -> Result<MonitorReport, LoopError> {
        monitor_round::run(self, &self.batch, now).await
    }

    fn pause(&self, report: &MonitorReport) -> Pause {
        monitor_round::pause(report)
    }
}
