//! Predicts the effects of clock changes on jobs' firings.

use chrono::{DateTime, Utc};
use sexton_model::cron::{Anomaly, Dialect, Expression};
use sexton_model::job::{JobSpec, Schedule};

use super::scheduled::ScheduledJob;

/// Returns the anomalies of all these jobs between two instants, in the order of the changes.
pub fn list(
    jobs: &[ScheduledJob],
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<(&ScheduledJob, Anomaly)> {
    let mut found: Vec<(&ScheduledJob, Anomaly)> =
        jobs.iter().flat_map(|job| anomalies(job, from, until)).collect();
    found.sort_by(|(job, a), (other, b)| {
        (a.change_at, &job.row.name).cmp(&(b.change_at, &other.row.name))
    });
    found
}

fn anomalies(
    job: &ScheduledJob,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> impl Iterator<Item = (&ScheduledJob, Anomaly)> {
    let read = match &job.spec.schedule {
        Schedule::Cron { expression } => {
            let JobSpec { name, days, .. } = &job.spec;
            Expression::parse_with_days(expression, Dialect::Any, name, *days).ok()
        }
        _ => None,
    };
    let (zone, dst) = (job.spec.timezone, job.spec.dst);
    let all = read.map(|expression| expression.anomalies(from, until, zone, dst));
    all.unwrap_or_default().into_iter().map(move |anomaly| (job, anomaly))
}
