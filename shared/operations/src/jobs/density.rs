//! How many firings jobs have in each part of the next day: where many of them fall together.

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::job::is_reserved;
use sexton_model::plan::Timetable;
use sexton_store::Store;
use sexton_store::jobs::{self, JobFilter};

use crate::error::OperationError;

/// Parts of the day.
pub const PARTS: usize = 144;
/// Length of a part, in seconds: ten minutes.
pub const PART_S: i64 = 600;
/// The most jobs that are counted.
pub const MAX_JOBS: i64 = 2_000;
/// A part is crowded if it has at least this many times the average, and [`MIN_CROWD`] firings.
const CROWD_FACTOR: u64 = 10;
/// Fewer firings in ten minutes crowd nothing.
const MIN_CROWD: u64 = 20;

/// The firings of the next 24 hours, in parts of ten minutes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FiringDensity {
    /// When the first part begins: the ten minutes in which the count was made.
    pub from: DateTime<Utc>,
    /// Firings of each part.
    pub counts: Vec<u64>,
    /// Number of jobs that were counted.
    pub jobs: usize,
    /// Whether these are all active jobs.
    pub complete: bool,
}

/// A part in which many firings fall together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrowdedPart {
    /// When it begins.
    pub from: DateTime<Utc>,
    /// Its firings.
    pub firings: u64,
    /// Its percentage of all firings of the day.
    pub percent: u64,
}

impl FiringDensity {
    /// Returns the number of all firings.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns when a part begins.
    pub fn begin(&self, part: usize) -> DateTime<Utc> {
        self.from + TimeDelta::seconds(PART_S * i64::try_from(part).unwrap_or(0))
    }

    /// Returns the parts with many times the firings of an average one, at most `limit`, the fullest first.
    pub fn crowded(&self, limit: usize) -> Vec<CrowdedPart> {
        let total = self.total();
        let is_crowded = |firings: u64| {
            firings >= MIN_CROWD && firings * PARTS as u64 >= total.saturating_mul(CROWD_FACTOR)
        };
        let crowded = self.counts.iter().enumerate().filter(|(_, firings)| is_crowded(**firings));
        let mut found: Vec<CrowdedPart> = crowded
            .map(|(part, firings)| CrowdedPart {
                from: self.begin(part),
                firings: *firings,
                percent: firings * 100 / total,
            })
            .collect();
        found.sort_by_key(|part| (std::cmp::Reverse(part.firings), part.from));
        found.truncate(limit);
        found
    }
}

/// Counts the firings of the active jobs in the 24 hours from `now`, of at most [`MAX_JOBS`] by name. It counts on a thread of its own; a
/// row whose schedule cannot be read has none.
///
/// # Errors
///
/// Those of the database.
pub async fn count(store: &Store, now: DateTime<Utc>) -> Result<FiringDensity, OperationError> {
    let filter = JobFilter { status: Some("active".to_owned()), ..JobFilter::default() };
    let rows = jobs::list(store, &filter, MAX_JOBS + 1).await?;
    let complete = rows.len() as i64 <= MAX_JOBS;
    let from = now
        - TimeDelta::seconds(now.timestamp().rem_euclid(PART_S))
        - TimeDelta::nanoseconds(i64::from(now.timestamp_subsec_nanos()));
    let counting = tokio::task::spawn_blocking(move || {
        let rows = rows.iter().take(MAX_JOBS as usize).filter(|row| !is_reserved(&row.name));
        let tables = rows.filter_map(|row| Timetable::of(&row.spec().ok()?).ok());
        let tables: Vec<Timetable> = tables.collect();
        FiringDensity { from, counts: count_in(&tables, from, now), jobs: tables.len(), complete }
    });
    let counted = counting.await;
    counted.map_err(|error| OperationError::Failed(format!("firings cannot be counted: {error}")))
}

/// What is before `now` in the first part is over.
fn count_in(tables: &[Timetable], from: DateTime<Utc>, now: DateTime<Utc>) -> Vec<u64> {
    let begin = |part: i64| (from + TimeDelta::seconds(PART_S * part)).max(now);
    let in_part =
        |part: i64| tables.iter().map(|table| table.count(begin(part), begin(part + 1))).sum();
    (0..PARTS as i64).map(in_part).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sexton_model::cron::Dst;
    use sexton_model::job::Schedule;
    use sexton_model::zone::Zone;

    use super::*;

    fn table(schedule: &Schedule) -> Timetable {
        Timetable::new("a.b", schedule, Zone::UTC, Dst::default(), None).unwrap()
    }

    #[test]
    fn the_first_part_counts_what_is_left_of_it() {
        let every = Schedule::Every { period: Duration::from_mins(1), phase: Duration::ZERO };
        let from: DateTime<Utc> = "2026-01-01T10:20:00Z".parse().unwrap();
        let counts = count_in(&[table(&every)], from, from + TimeDelta::seconds(270));
        assert_eq!(counts.len(), PARTS);
        assert_eq!((counts[0], counts[1], counts[PARTS - 1]), (5, 10, 10));
    }

    #[test]
    fn a_part_is_crowded_that_has_many_times_the_average() {
        let from: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut counts = vec![1; PARTS];
        counts[6] = 96;
        let density = FiringDensity { from, counts, jobs: 100, complete: true };
        let crowded = density.crowded(3);
        assert_eq!(crowded.len(), 1);
        assert_eq!((crowded[0].firings, crowded[0].percent), (96, 40));
        assert_eq!(crowded[0].from, from + TimeDelta::hours(1));
        let even = FiringDensity { counts: vec![500; PARTS], ..density.clone() };
        assert!(even.crowded(3).is_empty());
        assert!(FiringDensity { counts: vec![0; PARTS], ..density }.crowded(3).is_empty());
    }
}
