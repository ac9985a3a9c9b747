//! Judges the checks of foreign jobs when a ping may be missing, or one has reported something.
//!
//! It works as [`super::job_monitors`] does: every scheduler judges other checks, and what is found is written in one transaction with what
//! the checks remember.

use std::time::Duration;

use sexton_model::check::{Check, CheckMemory, judge};
use sexton_model::duration::to_millis;
use sexton_model::incident::SubjectKind;
use sexton_store::checks::judging::{CheckRound, next_due, take_wakeups};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError};

use super::monitor_round::{
    self, Findings, MAX_BATCH_MONITORS, MonitorReport, Monitors, Subject, UNREADABLE_PAUSE,
};
use crate::adaptive_batch::AdaptiveBatch;
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// The loop that judges checks.
#[derive(Debug)]
pub struct CheckMonitors {
    store: Store,
    batch: AdaptiveBatch,
}

impl CheckMonitors {
    /// Creates the loop, whose first round runs at once.
    pub const fn new(store: Store) -> Self {
        Self { store, batch: AdaptiveBatch::with_max(MAX_BATCH_MONITORS) }
    }
}

impl Monitors for CheckMonitors {
    async fn take_wakeups(&self, limit: i64, now: Now) -> Result<u64, StoreError> {
        take_wakeups(&self.store, limit, now).await
    }

    async fn judge(&self, limit: usize, now: Now) -> Result<MonitorReport, LoopError> {
        let beginning = CheckRound::begin(&self.store, limit as i64, now);
        let Some(mut round) = with_timeout(QUERY_TIMEOUT, beginning).await? else {
            return Ok(MonitorReport::default());
        };
        let mut pings = with_timeout(QUERY_TIMEOUT, round.read_pings()).await?;
        let mut findings: Findings<CheckMemory> = Findings::default();
        for due in &round.due {
            let row = &due.row;
            let (Ok(spec), Ok(expression)) = (row.spec(), row.expression()) else {
                tracing::warn!(check.name = row.name, "this version cannot read a check");
                let later = Some(round.now + UNREADABLE_PAUSE);
                findings.checked.push((row.id, due.memory.clone(), later));
                continue;
            };
            let check = Check {
                spec,
                expression,
                is_paused: row.is_paused,
                changed_at: row.changed_at,
                deleted_at: row.deleted_at,
                endpoint: round.endpoint,
                pings: pings.remove(&row.id).unwrap_or_default(),
            };
            let judged = judge(&check, &due.memory, round.now);
            findings.checked.push((row.id, judged.memory, judged.next_check));
            let subject = Subject {
                kind: SubjectKind::Check,
                id: row.id,
                name: row.name.clone(),
                severity: check.spec.severity,
                labels: check.spec.labels,
                remind_every_ms: check.spec.remind_every.map(to_millis),
            };
            findings.add(subject, judged.change);
        }
        let judged = round.due.len();
        let Findings { checked, occurrences, recovered } = &findings;
        with_timeout(QUERY_TIMEOUT, round.finish(checked, occurrences, recovered)).await?;
        findings.log();
        Ok(findings.report(judged))
    }

    async fn next_due(&self, now: Now) -> Result<Option<Duration>, StoreError> {
        next_due(&self.store, now).await
    }
}

impl BackgroundLoop for CheckMonitors {
    const NAME: &'static str = "check_monitors";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(1);
    type Report = MonitorReport;

    async fn run_once(&self, now: Now) -> Result<MonitorReport, LoopError> {
        monitor_round::run(self, &self.batch, now).await
    }

    fn pause(&self, report: &MonitorReport) -> Pause {
        monitor_round::pause(report)
    }
}
