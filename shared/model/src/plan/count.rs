//! Counts the firings of a schedule and a timetable in a range, without visiting each.

use std::iter;

use chrono::{DateTime, Utc};

use super::firings::after;
use super::rule::Rule;
use super::timetable::{Timetable, before};

impl Timetable {
    /// Returns the exact number of firings from `from` on and before `until`.
    ///
    /// The cost does not grow with their number: the schedule's firings are counted between the excluded days.
    pub fn count(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> u64 {
        self.spans(from, until).iter().map(|(from, until)| self.rule.count(*from, *until)).sum()
    }

    /// Returns the firing with index `back` from the end of those that [`Self::count`] counts, whose last is the
    /// first; `None` if there are fewer. Costs a few times as much as counting.
    pub fn nth_last(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        mut back: u64,
    ) -> Option<DateTime<Utc>> {
        for (from, until) in self.spans(from, until).into_iter().rev() {
            // Most callers want the newest, which the search finds without counting.
            if let Some(firing) = self.rule.nth_last(from, until, back) {
                return Some(firing);
            }
            back = back.checked_sub(self.rule.count(from, until))?;
        }
        None
    }

    /// Yields when the firings become due that do so from `from` on and before `until`, ascending: their nominal times, with their jitter.
    /// Each costs a search.
    pub fn due_times(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> impl Iterator<Item = DateTime<Utc>> {
        let mut cursor = before(self.spread_from(from).unwrap_or(from));
        iter::from_fn(move || {
            cursor = self.next_after(cursor).filter(|nominal| *nominal < until)?;
            Some(self.due(cursor))
        })
        .skip_while(move |due| *due < from)
        .take_while(move |due| *due < until)
    }

    /// Returns the parts of a range that can have firings: between start and end, without the excluded days. In their
    /// order; half-open as the range.
    fn spans(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
        let (mut from, until) = self.within(from, until);
        let mut spans = Vec::new();
        while from < until {
            let excluded = self.exclude.next_from(from, self.zone);
            let Some((begin, end)) = excluded.filter(|(begin, _)| *begin < until) else {
                spans.push((from, until));
                break;
            };
            if from < begin {
                spans.push((from, begin));
            }
            from = end;
        }
        spans
    }

    /// Returns the part of a range between start and end.
    pub(super) fn within(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> (DateTime<Utc>, DateTime<Utc>) {
        let from = self.start.map_or(from, |start| start.max(from));
        (from, self.end.map_or(until, |end| after(end).min(until)))
    }
}

impl Rule {
    /// Returns the exact number of nominal times from `from` on and before `until`: a period is divided, a cron
    /// expression counted as [`Expression::count`](crate::cron::Expression::count) does.
    pub(super) fn count(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> u64 {
        match self {
            Self::Cron { expression, zone, dst } => expression.count(from, until, *zone, *dst),
            Self::Every { period_ms, phase_ms } => {
                let [first, end] =
                    [from, until].map(|at| periods_before(at, *period_ms, *phase_ms));
                u64::try_from(end - first).unwrap_or(0)
            }
            Self::Once(at) => u64::from((from..until).contains(at)),
            Self::Never => 0,
        }
    }

    /// Returns the one with index `back` from the end, whose last is the first.
    pub(super) fn nth_last(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        back: u64,
    ) -> Option<DateTime<Utc>> {
        match self {
            Self::Cron { expression, zone, dst } => {
                expression.nth_last(from, until, back, *zone, *dst)
            }
            Self::Every { period_ms, phase_ms } => {
                let back = i64::try_from(back).ok().filter(|back| *back > 0)?;
                let firing = periods_before(until, *period_ms, *phase_ms).checked_sub(back)?;
                let is_there = firing >= periods_before(from, *period_ms, *phase_ms);
                DateTime::from_timestamp_millis(firing.checked_mul(*period_ms)? + *phase_ms)
                    .filter(|_| is_there)
            }
            Self::Once(at) => (back == 1 && (from..until).contains(at)).then_some(*at),
            Self::Never => None,
        }
    }
}

/// Returns the index of the first firing that is not before `at`, counted from the epoch plus the phase.
fn periods_before(at: DateTime<Utc>, period_ms: i64, phase_ms: i64) -> i64 {
    let part = i64::from(!at.timestamp_subsec_nanos().is_multiple_of(1_000_000));
    let at_ms = at.timestamp_millis() + part - phase_ms;
    at_ms.div_euclid(period_ms) + i64::from(at_ms.rem_euclid(period_ms) > 0)
}
