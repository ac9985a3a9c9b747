//! When a check expects pings, and which of them are missing.
//!
//! A pause in which nobody accepted pings forgives what it may have swallowed, and nothing else: a check whose ping was due long
//! before or is due long after is judged as if the pause had not been. A check is forgiven once in a row, so a job that has died is
//! noticed however often pings are interrupted.

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};

use super::{Cadence, Check, CheckMemory, Pause, delta, last_ping};
use crate::cron::{Dst, Expression};

/// The longest time by which a ping counts as early unless the check says so.
const MAX_EARLY_BY: TimeDelta = TimeDelta::minutes(5);
/// The most expected instants that count as missed at once.
const MAX_MISSED: u64 = 1_000_000;

/// From when on pings are expected.
pub(super) struct Expected<'a> {
    cadence: &'a Cadence,
    expression: Option<&'a Expression>,
    grace: TimeDelta,
    early_by: Option<TimeDelta>,
    /// The last sign of life, or up to when what was expected is settled, if that is later.
    from: DateTime<Utc>,
    /// Whether that is a ping: one a little early counts for its time.
    from_ping: bool,
    /// Whether nothing was settled since the last sign of life.
    can_be_forgiven: bool,
}

/// What became of the expected instants whose deadline has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Settled {
    /// Up to when what was expected is settled now.
    pub(super) to: DateTime<Utc>,
    /// Those without a ping; `None`: all are forgiven.
    pub(super) missed: Option<Missed>,
}

/// Expected instants without a ping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Missed {
    pub(super) last: DateTime<Utc>,
    pub(super) number: u64,
}

impl<'a> Expected<'a> {
    /// Nothing was expected before `not_before`.
    pub(super) fn of(
        check: &'a Check,
        memory: &CheckMemory,
        not_before: Option<DateTime<Utc>>,
    ) -> Self {
        let ping = last_ping(check).map(|ping| ping.at);
        let floor = not_before.max(Some(check.changed_at));
        let sign = ping.max(floor).unwrap_or(check.changed_at);
        let settled = memory.settled_to.filter(|settled| *settled > sign);
        Self {
            cadence: &check.spec.cadence,
            expression: check.expression.as_ref(),
            grace: delta(check.spec.grace),
            early_by: check.spec.early_by.map(delta),
            from: settled.unwrap_or(sign),
            from_ping: ping == Some(sign) && settled.is_none(),
            can_be_forgiven: settled.is_none(),
        }
    }

    /// The next expected instant that is not settled.
    pub(super) fn next(&self) -> Option<DateTime<Utc>> {
        self.after(self.from)
    }

    fn after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.cadence {
            Cadence::Every(period) => from.checked_add_signed(delta(*period)),
            Cadence::Schedule { .. } => {
                let first = self.firing_after(from)?;
                let Some(second) =
                    self.firing_after(first).filter(|_| self.from_ping && from == self.from)
                else {
                    return Some(first);
                };
                let early_by = self.early_by(second - first);
                Some(if first - from <= early_by { second } else { first })
            }
        }
    }

    fn firing_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let Cadence::Schedule { zone, .. } = self.cadence else { return None };
        self.expression?.next_after(from, *zone, Dst::default())
    }

    /// How early a ping may be whose next one is so far away. A ping is early for one firing only.
    fn early_by(&self, distance: TimeDelta) -> TimeDelta {
        self.early_by.unwrap_or((distance / 10).min(MAX_EARLY_BY)).min(distance / 2)
    }

    /// Settles the expected instants whose deadline is not after `observed`, until when every ping that was sent has been accepted but
    /// for those of `pause`; `None`: there is none.
    pub(super) fn settle(&self, observed: DateTime<Utc>, pause: Pause) -> Option<Settled> {
        let over = observed - self.grace;
        let first = self.next().filter(|first| *first <= over)?;
        if !self.can_be_forgiven {
            let missed = self.between(first, over)?;
            return Some(Settled { to: missed.last, missed: Some(missed) });
        }
        // Before the pause, in it, and after it.
        let mut settled = Settled { to: self.from, missed: None };
        let heard = over.min(pause.from - self.grace - TimeDelta::milliseconds(1));
        if let Some(missed) = (first <= heard).then(|| self.between(first, heard)).flatten() {
            settled = Settled { to: missed.last, missed: Some(missed) };
        }
        let mut next = self.after(settled.to).filter(|next| *next <= over);
        if let Some(at) = next.filter(|at| self.may_be_swallowed(settled.to, *at, pause)) {
            settled.to = self.swallowed_to(at, pause);
            next = self.after(settled.to).filter(|next| *next <= over);
        }
        if let Some(missed) = next.and_then(|next| self.between(next, over)) {
            let before = settled.missed.map_or(0, |missed| missed.number);
            let number = missed.number + before;
            settled = Settled { to: missed.last, missed: Some(Missed { number, ..missed }) };
        }
        Some(settled)
    }

    /// Whether the ping of an expected instant may have been sent in the pause.
    ///
    /// A job that pings more often than its period may have pinged before. If it pings regularly, the next ping comes in time unless the
    /// pause swallowed one in the second half of the time up to the deadline.
    fn may_be_swallowed(&self, last: DateTime<Utc>, at: DateTime<Utc>, pause: Pause) -> bool {
        let deadline = at + self.grace;
        let earliest = match self.cadence {
            Cadence::Every(_) => last + (deadline - last) / 2,
            Cadence::Schedule { .. } => {
                at - self
                    .firing_after(at)
                    .map_or(TimeDelta::zero(), |next| self.early_by(next - at))
            }
        };
        pause.from <= deadline && pause.until >= earliest && pause.until > last
    }

    /// Up to when nothing more is expected, after a pause that may have swallowed the ping of `at`.
    fn swallowed_to(&self, at: DateTime<Utc>, pause: Pause) -> DateTime<Utc> {
        match self.cadence {
            // The next ping comes within a period after the pause.
            Cadence::Every(_) => at.max(pause.until),
            Cadence::Schedule { .. } => {
                let early_by = self.firing_after(at).map(|next| self.early_by(next - at));
                let end = pause.until + early_by.unwrap_or_default();
                self.between(at, end).map_or(at, |within| within.last)
            }
        }
    }

    /// The expected instants from `first`, which is one, up to `end`.
    fn between(&self, first: DateTime<Utc>, end: DateTime<Utc>) -> Option<Missed> {
        match self.cadence {
            Cadence::Every(period) => {
                let period = delta(*period);
                let more = whole(end - first, period).min(MAX_MISSED);
                Some(Missed { last: first + multiple(period, more)?, number: more + 1 })
            }
            Cadence::Schedule { zone, .. } => {
                let expression = self.expression?;
                let behind = end.trunc_subsecs(0) + TimeDelta::seconds(1);
                let number = expression.count(first, behind, *zone, Dst::default());
                let last = expression.nth_last(first, behind, 1, *zone, Dst::default());
                let last = last.filter(|last| *last <= end).unwrap_or(first);
                Some(Missed { last, number: number.max(1) })
            }
        }
    }
}

/// How many whole periods a time has.
fn whole(time: TimeDelta, period: TimeDelta) -> u64 {
    let (time, period) = (time.num_milliseconds().max(0), period.num_milliseconds().max(1));
    (time / period).unsigned_abs()
}

fn multiple(period: TimeDelta, number: u64) -> Option<TimeDelta> {
    let milliseconds = period.num_milliseconds().checked_mul(i64::try_from(number).ok()?)?;
    TimeDelta::try_milliseconds(milliseconds)
}
