//! The plan by visiting every firing: slow and plain, the reference for the plan.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{Misfire, MisfirePolicy, Schedule};
use crate::plan::{Gap, GapReason, Plan, PlanInput, Timetable, before, build_rows};

/// The reference for [`crate::plan::plan`].
pub(super) fn plan(due: &PlanInput<'_>, now: DateTime<Utc>) -> Plan {
    let Stretch { firings, next } = Stretch::find(due.timetable, due.next_fire_at, now);
    let dues: Vec<_> = firings.iter().map(|firing| due.timetable.due(*firing)).collect();
    let (kept_from, gaps) = not_executed(&firings, &dues, &due.misfire, now);
    Plan {
        firings: build_rows(
            due,
            0,
            firings[kept_from..].iter().copied(),
            before(now, Misfire::ON_TIME_GRACE),
        ),
        gaps,
        held: None,
        next_fire_at: next,
    }
}

/// The due firings, and the first one after them.
struct Stretch {
    firings: Vec<DateTime<Utc>>,
    next: Option<DateTime<Utc>>,
}

impl Stretch {
    fn find(timetable: &Timetable, first: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let mut firings = Vec::new();
        let mut next = Some(first).filter(|_| *timetable.schedule() != Schedule::None);
        while let Some(firing) = next.filter(|firing| timetable.due(*firing) <= now) {
            firings.push(firing);
            next = timetable.next_after(firing);
        }
        Self { firings, next }
    }
}

fn not_executed(
    firings: &[DateTime<Utc>],
    dues: &[DateTime<Utc>],
    misfire: &Misfire,
    now: DateTime<Utc>,
) -> (usize, Vec<Gap>) {
    let older_than = |age: Duration| {
        dues.partition_point(|due| (now - *due).to_std().is_ok_and(|late| late > age))
    };
    let on_time_from = older_than(Misfire::ON_TIME_GRACE);
    let in_window_from = older_than(misfire.window).min(on_time_from);
    let superseded = misfire.policy == MisfirePolicy::FireOnce && on_time_from < firings.len();
    let late_runs = match misfire.policy {
        MisfirePolicy::Skip => 0,
        MisfirePolicy::FireOnce => usize::from(!superseded),
        MisfirePolicy::FireAll => misfire.limit.min(Misfire::MAX_LIMIT) as usize,
    };
    let runs_from = on_time_from.saturating_sub(late_runs).max(in_window_from);
    let given_up = match misfire.policy {
        MisfirePolicy::Skip => GapReason::MisfireSkip,
        MisfirePolicy::FireOnce => GapReason::Coalesced,
        MisfirePolicy::FireAll => GapReason::OverLimit,
    };
    let gaps = [
        gap(&firings[..in_window_from], GapReason::OutsideWindow),
        gap(&firings[in_window_from..runs_from], given_up),
    ];
    (runs_from, gaps.into_iter().flatten().collect())
}

fn gap(firings: &[DateTime<Utc>], reason: GapReason) -> Option<Gap> {
    let (&first, &last) = (firings.first()?, firings.last()?);
    Some(Gap { first, last, count: firings.len() as u32, reason })
}
