//! The firings of a job, over all schedules that it had.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use crate::plan::{RESOLUTION, Timetable};

/// A job's schedule from an instant on until the next revision begins.
#[derive(Clone, PartialEq, Debug)]
pub struct Revision {
    /// Its number, from 1 for the job as it was first applied.
    pub number: i32,
    /// Its firings are those after this instant.
    pub from: DateTime<Utc>,
    /// Its schedule.
    pub timetable: Timetable,
}

/// An instant at which a job's schedule fires.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NominalFiring {
    /// The instant.
    pub at: DateTime<Utc>,
    /// Its execution key.
    pub key: String,
    /// The revision that contains it; `None`: it was claimed, but no known schedule contains it.
    pub revision: Option<i32>,
}

/// The oldest firings of a range.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FiringPage {
    /// Oldest first, each once.
    pub firings: Vec<NominalFiring>,
    /// The first firing left out, beyond the maximum.
    pub next: Option<DateTime<Utc>>,
}

impl FiringPage {
    /// Merges these firings with those of `claimed` that are missing, and returns the oldest `max_firings`. `claimed`
    /// are the oldest of the range's executions of firings, more than `max_firings` if there are as many: no known
    /// schedule contains those that were backfilled from before the job existed, or that come from an older revision
    /// or other time zone data.
    #[must_use]
    pub fn with_claimed(self, claimed: Vec<(DateTime<Utc>, String)>, max_firings: usize) -> Self {
        let Self { mut firings, next } = self;
        let keys: HashSet<String> = firings.iter().map(|firing| firing.key.clone()).collect();
        let others = claimed.into_iter().filter(|(at, key)| {
            // Firings after the first one that was left out are left out, too.
            next.is_none_or(|next| *at < next) && !keys.contains(key)
        });
        firings.extend(others.map(|(at, key)| NominalFiring { at, key, revision: None }));
        firings.sort_by(|a, b| {
            let place = |firing: &NominalFiring| (firing.at, firing.revision.is_none());
            place(a).cmp(&place(b)).then_with(|| a.key.cmp(&b.key))
        });
        let next = firings.get(max_firings).map(|firing| firing.at).or(next);
        firings.truncate(max_firings);
        Self { firings, next }
    }
}

/// The schedules that a job had.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScheduleHistory {
    revisions: Vec<Revision>,
    until: Option<DateTime<Utc>>,
}

impl ScheduleHistory {
    /// Takes the revisions in any order; `until` is when the job was deleted.
    pub fn new(mut revisions: Vec<Revision>, until: Option<DateTime<Utc>>) -> Self {
        revisions.sort_by_key(|revision| revision.number);
        Self { revisions, until }
    }

    /// Returns the oldest known schedule.
    pub fn oldest(&self) -> Option<&Revision> {
        self.revisions.first()
    }

    /// Returns when the job was deleted.
    pub const fn until(&self) -> Option<DateTime<Utc>> {
        self.until
    }

    /// Returns the oldest `max_firings` nominal times from `from` to `to`, both included, also on excluded days. Each
    /// belongs to the revision in force at that time, which begins strictly after the instant of the change, as an
    /// apply does. Only a job that fires once may have an instant before it was applied.
    pub fn firings(
        &self,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        max_firings: usize,
    ) -> FiringPage {
        let mut found: Vec<NominalFiring> = Vec::new();
        for revision in &self.revisions {
            if let Some(at) = revision.timetable.once()
                && at <= revision.from
                && (from..=to).contains(&at)
            {
                found.extend(revision.nominal(at));
            }
        }
        let belated = found.len();
        for (index, revision) in self.revisions.iter().enumerate() {
            let end = self.end(index).map_or(to, |end| end.min(to));
            let mut at = revision.timetable.nominal_after(revision.from.max(from - RESOLUTION));
            while let Some(firing) =
                at.filter(|at| *at <= end && found.len() - belated <= max_firings)
            {
                found.extend(revision.nominal(firing));
                at = revision.timetable.nominal_after(firing);
            }
        }
        found.sort();
        found.dedup_by(|later, earlier| later.key == earlier.key);
        let next = found.get(max_firings).map(|nominal| nominal.at);
        found.truncate(max_firings);
        FiringPage { firings: found, next }
    }

    /// Returns the firing at exactly that instant.
    pub fn at(&self, at: DateTime<Utc>) -> Option<NominalFiring> {
        self.firings(at, at, 1).firings.pop()
    }

    /// Returns whether an instant is on a day that the schedule in force then excludes.
    pub fn excludes(&self, at: DateTime<Utc>) -> bool {
        let of_then = self.revisions.iter().rev().find(|revision| revision.from < at);
        of_then.is_some_and(|revision| revision.timetable.excludes(at))
    }

    /// Returns the first firing after an instant.
    pub fn after(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let of = |(index, revision): (usize, &Revision)| {
            let next = revision.timetable.next_after(revision.from.max(at))?;
            self.end(index).is_none_or(|end| next <= end).then_some(next)
        };
        self.revisions.iter().enumerate().filter_map(of).min()
    }

    /// Returns the last firing before an instant, within eight years.
    pub fn before(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let of = |(index, revision): (usize, &Revision)| {
            let end = self.end(index).map_or(at, |end| at.min(end + RESOLUTION));
            revision.timetable.last_between(revision.from, end)
        };
        self.revisions.iter().enumerate().filter_map(of).max()
    }

    /// Returns the last instant at which a revision was in force; `None`: it still is.
    fn end(&self, index: usize) -> Option<DateTime<Utc>> {
        self.revisions.get(index + 1).map(|next| next.from).or(self.until)
    }
}

impl Revision {
    fn nominal(&self, at: DateTime<Utc>) -> Option<NominalFiring> {
        let key = self.timetable.key_of(at)?;
        Some(NominalFiring { at, key, revision: Some(self.number) })
    }
}
