//! Runs of a foreign job, from its pings.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::{Ping, PingKind};

/// A run that has begun and not ended, as far as anybody knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenRun {
    /// `pings.id` of its start.
    pub(super) start: i64,
    pub(super) at: DateTime<Utc>,
}

/// Returns the runs that have not ended. A ping with a `rid` ends the run of this `rid`; one without ends the run that began without. A
/// second start of the same run begins another only after `limit`, and the one before has not ended in time: a job that dies and is
/// started again and again never ends.
pub(super) fn open_runs(pings: &[Ping], limit: TimeDelta) -> Vec<OpenRun> {
    let mut open: Vec<(Option<Uuid>, OpenRun)> = Vec::new();
    let mut over = Vec::new();
    for ping in pings {
        match ping.kind {
            PingKind::Log => {}
            PingKind::Start => {
                let is_over = |(rid, run): &mut (Option<Uuid>, OpenRun)| {
                    *rid == ping.rid && ping.at - run.at >= limit
                };
                over.extend(open.extract_if(.., is_over).map(|(_, run)| run));
                if !open.iter().any(|(rid, _)| *rid == ping.rid) {
                    open.push((ping.rid, OpenRun { start: ping.id, at: ping.at }));
                }
            }
            PingKind::Success | PingKind::Fail => open.retain(|(rid, _)| *rid != ping.rid),
        }
    }
    over.extend(open.into_iter().map(|(_, run)| run));
    over
}
