//! Gaps for the nominal times on excluded days: one for each range of days.

use chrono::{DateTime, Utc};

use super::firings::after;
use super::{Gap, GapReason, Timetable};

/// Returns gaps for the nominal times strictly after `from` and up to `to` on days that the job excludes, oldest
/// first: one for each range of days, counted without visiting.
///
/// `from` is up to when a job's firings are accounted for, so that each is accounted for once: when the first firing
/// after it is claimed. After the last firing (`is_last`), up to the job's end, since no planner plans the job again.
pub fn excluded_gaps(
    timetable: &Timetable,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    is_last: bool,
) -> Vec<Gap> {
    let to = if is_last { timetable.end.unwrap_or(to) } else { to };
    let (mut from, until) = timetable.within(after(from), after(to));
    let mut gaps = Vec::new();
    while from < until {
        let Some((begin, end)) = timetable.exclude.next_from(from, timetable.zone) else { break };
        gaps.extend(gap(timetable, begin, end.min(until)));
        from = end;
    }
    gaps
}

fn gap(timetable: &Timetable, from: DateTime<Utc>, until: DateTime<Utc>) -> Option<Gap> {
    let rule = &timetable.rule;
    let first = rule.next_after(super::timetable::before(from)).filter(|first| *first < until)?;
    let last = rule.nth_last(first, until, 1)?;
    let count = u32::try_from(rule.count(first, until)).unwrap_or(u32::MAX);
    Some(Gap { first, last, count: count.min(Gap::MAX_COUNT), reason: GapReason::Excluded })
}
