//! The next firings of a job, with the marks of clock changes.

use chrono::{DateTime, Utc};
use sexton_model::cron::{Anomaly, AnomalyKind};
use sexton_model::zone::Zone;
use sexton_operations::jobs::clock_changes;
use sexton_operations::jobs::next_firings::soonest;
use sexton_operations::jobs::scheduled::ScheduledJob;
use sexton_store::jobs::Job;

/// Firings that are shown.
const MAX_SHOWN: usize = 20;

/// A firing that lies ahead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct UpcomingFiring {
    pub(super) at: DateTime<Utc>,
    /// As the clocks of the job's zone show it.
    pub(super) wall: String,
    /// A clock change that moves it, doubles it, or comes before it.
    pub(super) mark: Option<String>,
}

/// Returns the next firings of a job; of a paused one those that it would have if it were resumed now.
pub(super) fn upcoming(job: &Job, now: DateTime<Utc>) -> Vec<UpcomingFiring> {
    // A row of another version has none that this one can compute.
    let Ok(spec) = job.spec() else { return Vec::new() };
    let zone = spec.timezone;
    let job = [ScheduledJob { row: job.clone(), spec }];
    let firings = soonest(&job, None, MAX_SHOWN, now);
    let Some(last) = firings.last().map(|firing| firing.at) else { return Vec::new() };
    let changes = clock_changes::list(&job, now.min(last), last);
    let changes: Vec<Anomaly> = changes.into_iter().map(|(_, anomaly)| anomaly).collect();
    let mut before: Option<DateTime<Utc>> = None;
    firings
        .iter()
        .map(|firing| {
            let mark = mark(firing.at, before.replace(firing.at), zone, &changes);
            let wall = zone.at(firing.at).format("%a %F %T %:z").to_string();
            UpcomingFiring { at: firing.at, wall, mark }
        })
        .collect()
}

fn mark(
    at: DateTime<Utc>,
    before: Option<DateTime<Utc>>,
    zone: Zone,
    changes: &[Anomaly],
) -> Option<String> {
    let is_of = |anomaly: &&Anomaly| {
        anomaly.fires_at == Some(at)
            || anomaly.kind == AnomalyKind::Doubled && anomaly.again_at == Some(at)
    };
    if let Some(anomaly) = changes.iter().find(is_of) {
        return Some(anomaly.describe(zone));
    }
    let before = before?;
    let skipped = |anomaly: &&Anomaly| {
        anomaly.kind == AnomalyKind::Skipped
            && before < anomaly.change_at
            && anomaly.change_at <= at
    };
    if let Some(anomaly) = changes.iter().find(skipped) {
        return Some(anomaly.describe(zone));
    }
    let offset = |at: DateTime<Utc>| zone.at(at).format("%:z").to_string();
    let (from, to) = (offset(before), offset(at));
    (from != to).then(|| format!("the clocks of {zone} change before it, from {from} to {to}"))
}
