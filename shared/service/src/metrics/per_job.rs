//! Metrics of single jobs, which schedulers answer if `METRICS_PER_JOB` says so.

use super::SnapshotGauge;
use super::family::{Info, Kind, Label, Values};
use crate::settings::Program::Scheduler;

const JOB: Label = Label { name: "job", values: Values::Chosen("a job") };

const fn gauge(name: &'static str, help: &'static str) -> Info {
    let programs = &[Scheduler];
    Info { name, help, kind: Kind::Gauge, labels: &[JOB], programs, is_platform: true }
}

/// When jobs last succeeded.
pub static JOB_LAST_SUCCESS: SnapshotGauge<1> = SnapshotGauge::new(gauge(
    "job_last_success_timestamp_seconds",
    "When the job's last success among its 100 newest executions ended, as a Unix time; absent without one.",
));

/// When jobs fire next.
pub static JOB_NEXT_FIRING: SnapshotGauge<1> = SnapshotGauge::new(gauge(
    "job_next_firing_timestamp_seconds",
    "When the job's next unclaimed firing is due, as a Unix time; absent if it is paused or never fires again.",
));

/// Failures in a row.
pub static JOB_CONSECUTIVE_FAILURES: SnapshotGauge<1> = SnapshotGauge::new(gauge(
    "job_consecutive_failures",
    "Executions of the job that failed for good since its last success, of the 100 newest.",
));
