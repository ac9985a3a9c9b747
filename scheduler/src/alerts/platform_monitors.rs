//! Judges the platform itself once a minute, and opens incidents for what lasts.
//!
//! One scheduler at a time gathers what `sexton doctor` gathers, on connections of its own. A finding opens an incident
//! when a second judgement finds it as well, so a fault that is over within a minute raises no alarm; a finding that is
//! gone resolves its incident.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::incident::{Severity, SubjectKind};
use sexton_model::lint::Severity as FindingSeverity;
use sexton_operations::actor::Actor;
use sexton_operations::connect::Connector;
use sexton_operations::doctor::facts::{Facts, Rows};
use sexton_operations::doctor::gather::gather;
use sexton_operations::doctor::{Code, Finding, diagnose};
use sexton_operations::status::Warning;
use sexton_service::settings::{ConsoleSettings, FailedLimits};
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::heartbeats::undelivered::{self, Undelivered};
use sexton_store::incidents::Occurrence;
use sexton_store::monitors::platform::record_findings;
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};

use super::platform_cause::{ALARMING, PlatformCause};
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

const JUDGE_INTERVAL: Duration = Duration::from_mins(1);
/// How long work waits for a pool without workers before it is a finding, in milliseconds.
const MAX_UNSERVED_MS: i64 = 60_000;
/// Jobs that the finding of undelivered heartbeats names.
const MAX_NAMED_JOBS: usize = 5;
/// Longest text of it, in characters.
const MAX_DETAIL: usize = 3_000;
/// How long pings may be refused.
const MAX_UNACCEPTED: Duration = Duration::from_mins(1);

/// The loop that judges the platform.
#[derive(Debug)]
pub struct PlatformMonitors {
    store: Store,
    settings: ConsoleSettings,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlatformMonitorsReport {
    /// Findings that stand.
    pub findings: usize,
    /// Incidents that opened.
    pub opened: usize,
    /// Incidents that were resolved.
    pub resolved: usize,
}

impl PlatformMonitors {
    /// Creates the loop, whose first round runs at once. `settings` say where the servers are.
    pub const fn new(store: Store, settings: ConsoleSettings) -> Self {
        Self { store, settings }
    }
}

/// Returns what is wrong with the platform, each finding as an occurrence whose subject is its code.
pub fn judge_platform(facts: &Facts, limits: FailedLimits) -> Vec<Occurrence> {
    let findings = diagnose(facts);
    let alarming = |finding: &&Finding| {
        finding.severity == FindingSeverity::Error || ALARMING.contains(&finding.code)
    };
    let mut found: Vec<Occurrence> = Vec::new();
    for finding in findings.iter().filter(alarming) {
        let name = finding.code.entry().name;
        let detail = format!("{} {}\n{}", finding.what, finding.evidence, finding.remedy);
        // Several findings of one code are one incident.
        match found.iter_mut().find(|one| one.subject == name) {
            Some(one) => one.detail = format!("{}\n{}", one.detail, finding.evidence),
            None => found.push(occurrence(
                name.to_owned(),
                PlatformCause::Finding(finding.code),
                Severity::High,
                detail,
            )),
        }
    }
    if let Some(rows) = facts.rows() {
        found.extend(unserved_pools(rows));
        found.extend(failed(rows, limits));
        found.extend(unaccepted_pings(rows));
    }
    found
}

fn unserved_pools(rows: &Rows) -> impl Iterator<Item = Occurrence> {
    let unserved = rows.pools.iter().filter(|pool| {
        pool.workers == 0 && pool.oldest_due_ms.is_some_and(|ms| ms > MAX_UNSERVED_MS)
    });
    unserved.filter_map(|pool| {
        let detail = format!("{}; start a worker with this pool", Warning::of(pool)?);
        let code = format!("pool_without_workers:{}", pool.pool);
        let cause = PlatformCause::Finding(Code::PoolWithoutWorkers);
        Some(occurrence(code, cause, Severity::High, detail))
    })
}

fn failed(rows: &Rows, limits: FailedLimits) -> impl Iterator<Item = Occurrence> {
    // The last hour's number is for `sexton status`: a burst shows in the number of failed executions as well.
    Warning::of_failed(&rows.overview, 0, limits).into_iter().map(|warning| {
        let cause = match warning {
            Warning::FailedForLong { .. } => PlatformCause::FailedQueueTooOld,
            _ => PlatformCause::FailedQueueTooDeep,
        };
        occurrence(cause.as_str().to_owned(), cause, Severity::Medium, warning.to_string())
    })
}

fn unaccepted_pings(rows: &Rows) -> Option<Occurrence> {
    let silence = rows.pings_unaccepted.filter(|silence| *silence > MAX_UNACCEPTED)?;
    let detail = format!(
        "no process has accepted pings for {} s, so that nothing is known of the jobs that checks watch; start `sexton serve`",
        silence.as_secs()
    );
    let cause = PlatformCause::PingEndpointDown;
    Some(occurrence(cause.as_str().to_owned(), cause, Severity::High, detail))
}

/// Returns the finding that heartbeats of jobs do not arrive; all of them are one incident.
pub fn undelivered_heartbeats(undelivered: &[Undelivered]) -> Option<Occurrence> {
    let first = undelivered.first()?;
    let lines = undelivered.iter().take(MAX_NAMED_JOBS).map(|one| {
        let Undelivered { job, address, since, error } = one;
        format!("{job}, to {address}, since {}: {error}", since.format("%Y-%m-%d %H:%M:%S UTC"))
    });
    let lines: Vec<String> = lines.collect();
    let detail = format!(
        "heartbeats of {} jobs do not arrive; `sexton jobs show {}` shows the last one\n{}",
        undelivered.len(),
        first.job,
        lines.join("\n")
    );
    let detail = detail.chars().take(MAX_DETAIL).collect();
    let cause = PlatformCause::HeartbeatsUndelivered;
    // A watcher that hears nothing raises its own alarm, if it is up.
    Some(occurrence(cause.as_str().to_owned(), cause, Severity::Medium, detail))
}

fn occurrence(
    code: String,
    cause: PlatformCause,
    severity: Severity,
    detail: String,
) -> Occurrence {
    debug_assert!(PlatformCause::all().any(|one| one == cause), "{}", cause.as_str());
    Occurrence {
        subject_kind: SubjectKind::Platform,
        name: code.clone(),
        subject: code,
        cause: cause.as_str().to_owned(),
        severity,
        labels: BTreeMap::new(),
        detail,
        job: None,
        execution: None,
        occurrences: 1,
        remind_every_ms: None,
    }
}

impl BackgroundLoop for PlatformMonitors {
    const NAME: &'static str = "platform_monitors";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = PlatformMonitorsReport;

    async fn run_once(&self, now: Now) -> Result<PlatformMonitorsReport, LoopError> {
        let locking = ExclusiveLock::try_acquire(&self.store, ExclusiveTask::PlatformMonitors, now);
        let Some(lock) = with_timeout(QUERY_TIMEOUT, locking).await? else {
            return Ok(PlatformMonitorsReport::default());
        };
        let actor = Actor {
            name: "sexton".to_owned(),
            host: String::new(),
            process_id: std::process::id(),
            origin: None,
            is_interactive: false,
        };
        let connector = Connector {
            settings: &self.settings,
            actor: &actor,
            application: "sexton platform monitors",
            connections: 1,
        };
        let Ok(facts) = gather(&connector).await else {
            // Without DATABASE_URL no scheduler runs.
            return Ok(PlatformMonitorsReport::default());
        };
        if facts.rows().is_none() {
            // Nothing is known of most findings, so none of them is over.
            return Ok(PlatformMonitorsReport::default());
        }
        let undelivered = undelivered::list(&self.store, now);
        let undelivered = with_timeout(QUERY_TIMEOUT, undelivered).await?;
        let mut found = judge_platform(&facts, self.settings.failed);
        found.extend(undelivered_heartbeats(&undelivered));
        let recording = record_findings(&self.store, &found, now);
        let (opened, resolved) = with_timeout(QUERY_TIMEOUT, recording).await?;
        with_timeout(QUERY_TIMEOUT, lock.release()).await?;
        Ok(PlatformMonitorsReport { findings: found.len(), opened, resolved })
    }

    fn pause(&self, _: &PlatformMonitorsReport) -> Pause {
        Pause::AtMost(JUDGE_INTERVAL)
    }
}
