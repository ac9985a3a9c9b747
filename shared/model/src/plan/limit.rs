//! Plans a job that runs a limited number of firings.
//!
//! The number of runs left is in the job's row, and a claim updates it in its transaction, under the lock of the row.
//! So the number holds with any number of schedulers, and no crash can come between claiming and counting.

use chrono::{DateTime, Utc};

use super::{Disposition, Firing, Gap, GapReason, Plan, PlanInput, plan, plan_as_gap, release};

/// Like [`plan`], but at most `left` firings may run; `None`: any number.
///
/// The oldest of those that would run do. If there are more, the plan ends before the first of these, which is due:
/// existing rows use no run, so only the process that writes the rows knows whether it may run. When none is left,
/// due firings are past the end, and the job never fires again.
pub fn plan_at_most(due: &PlanInput<'_>, left: Option<u32>, now: DateTime<Utc>) -> Plan {
    let Some(left) = left else { return plan(due, now) };
    if left == 0 {
        let over = plan_as_gap(due.timetable, due.next_fire_at, now, GapReason::PastEnd);
        return Plan { next_fire_at: None, ..over };
    }
    let mut plan = plan(due, now);
    if let Some(over) = plan.cut_after(left).first() {
        plan.next_fire_at = Some(over.scheduled_for);
    }
    plan
}

/// Like [`release`], but at most `left` firings may run: later ones are past the end.
pub fn release_at_most(
    due: &PlanInput<'_>,
    (begun, left): (u64, Option<u32>),
    last: DateTime<Utc>,
    held_at: DateTime<Utc>,
) -> Plan {
    let mut plan = release(due, begun, last, held_at);
    let over = left.map_or_else(Vec::new, |left| plan.cut_after(left));
    if let (Some(first), Some(last)) = (over.first(), over.last()) {
        let [first, last] = [first, last].map(|firing| firing.scheduled_for);
        let count = u32::try_from(over.len()).unwrap_or(Gap::MAX_COUNT);
        plan.gaps.push(Gap { first, last, count, reason: GapReason::PastEnd });
    }
    plan
}

impl Plan {
    /// Returns how many of its firings run.
    pub fn runs(&self) -> u32 {
        self.firings.iter().filter(|firing| runs(firing)).count() as u32
    }

    /// Returns how many of its firings run without waiting for their job: those that a rate spreads, if they are
    /// late.
    pub fn begins(&self) -> u64 {
        let begins = |firing: &&Firing| firing.disposition == Disposition::Run;
        self.firings.iter().filter(begins).count() as u64
    }

    /// Removes the first firing that runs after `left` of them, and all that come after it.
    fn cut_after(&mut self, left: u32) -> Vec<Firing> {
        let mut running = self.firings.iter().enumerate().filter(|(_, firing)| runs(firing));
        match running.nth(left as usize) {
            Some((index, _)) => self.firings.split_off(index),
            None => Vec::new(),
        }
    }
}

const fn runs(firing: &Firing) -> bool {
    !matches!(firing.disposition, Disposition::Skipped(_))
}
