//! The firings of the next day: how many fall into each part of it, and into which minutes too many fall together.

mod hot;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::job::is_reserved;
use sexton_model::plan::Timetable;
use sexton_store::Store;
use sexton_store::jobs::{self, JobFilter};

use crate::error::OperationError;

/// Parts of the day.
pub const PARTS: usize = 144;
/// Length of a part, in minutes.
pub const PART_MINUTES: usize = 10;
/// The most jobs that are counted.
pub const MAX_JOBS: usize = 5_000;
/// Jobs that are read by one statement.
const PAGE_JOBS: i64 = 1_000;
const MINUTES: usize = PARTS * PART_MINUTES;
/// The most searches of firings: those of 5,000 jobs that fire every five minutes, and a few more.
const MAX_STEPS: usize = 1_600_000;
/// Hot minutes that are described.
const MAX_HOT: usize = 3;
/// Jobs that the description of a hot minute names.
const JOBS_NAMED: usize = 2;

/// A job, and when it fires.
#[derive(Clone, PartialEq, Debug)]
struct CountedJob {
    name: String,
    table: Timetable,
}

/// The firings of the next 24 hours.
#[derive(Clone, PartialEq, Debug)]
pub struct FiringDay {
    /// When the first part begins: the ten minutes in which the count was made.
    pub from: DateTime<Utc>,
    /// Firings of each part. The first has those that are left of it, and the next day's until the time of the count.
    pub counts: Vec<u64>,
    /// The fullest of the hot minutes, the fullest first.
    pub hot: Vec<HotMinute>,
    /// When all hot minutes begin, the fullest first.
    pub all_hot: Vec<DateTime<Utc>>,
    /// Whether these are the firings of all active jobs.
    pub complete: bool,
    jobs: Vec<CountedJob>,
}

/// A minute into which too many firings fall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HotMinute {
    /// When it begins.
    pub at: DateTime<Utc>,
    /// Its firings.
    pub firings: u64,
    /// Its percentage of all firings of the day.
    pub percent: u64,
    /// A few of the jobs that fire then, by name.
    pub jobs: Vec<String>,
    /// How many more do.
    pub more_jobs: usize,
}

/// What a job fires in a part of a day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobInPart {
    /// The job's name.
    pub job: String,
    /// When its first firing is due.
    pub first: DateTime<Utc>,
    /// Its firings.
    pub firings: u64,
}

impl FiringDay {
    /// Makes one without any job.
    pub fn empty(now: DateTime<Utc>) -> Self {
        count_jobs(Vec::new(), true, now)
    }

    /// Returns the number of all firings.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the number of jobs that were counted.
    pub const fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Returns when a part begins.
    pub fn begin(&self, part: usize) -> DateTime<Utc> {
        self.from + minutes(part * PART_MINUTES)
    }

    /// Lists the jobs that fire in the ten minutes from `from` on, the first to fire first.
    pub fn list_part(&self, from: DateTime<Utc>) -> Vec<JobInPart> {
        let until = from + minutes(PART_MINUTES);
        let in_part = |CountedJob { name, table }: &CountedJob| {
            let mut due = table.due_times(from, until);
            let first = due.next()?;
            Some(JobInPart { job: name.clone(), first, firings: 1 + due.count() as u64 })
        };
        let mut found: Vec<JobInPart> = self.jobs.iter().filter_map(in_part).collect();
        found.sort_by(|one, other| (one.first, &one.job).cmp(&(other.first, &other.job)));
        found
    }
}

/// Returns when the ten minutes begin to which an instant belongs.
pub fn part_of(at: DateTime<Utc>) -> DateTime<Utc> {
    let since = at.timestamp().rem_euclid(60 * PART_MINUTES as i64);
    at - TimeDelta::seconds(since) - TimeDelta::nanoseconds(i64::from(at.timestamp_subsec_nanos()))
}

fn minutes(count: usize) -> TimeDelta {
    TimeDelta::minutes(count as i64)
}

/// Counts the firings of the active jobs in the 24 hours from `now`, of at most [`MAX_JOBS`] by name, and of fewer if these fire very
/// often. It counts on a thread of its own; a row whose schedule cannot be read has none.
///
/// # Errors
///
/// Those of the database.
pub async fn count(store: &Store, now: DateTime<Utc>) -> Result<FiringDay, OperationError> {
    let mut filter = JobFilter { status: Some("active".to_owned()), ..JobFilter::default() };
    let (mut rows, mut is_full) = (Vec::new(), true);
    while is_full && rows.len() <= MAX_JOBS {
        let page = jobs::list(store, &filter, PAGE_JOBS).await?;
        is_full = page.len() as i64 == PAGE_JOBS;
        filter.after = page.last().map(|job| job.name.clone());
        rows.extend(page);
    }
    let counting = tokio::task::spawn_blocking(move || {
        let complete = rows.len() <= MAX_JOBS;
        let rows = rows.into_iter().take(MAX_JOBS).filter(|row| !is_reserved(&row.name));
        let jobs = rows.filter_map(|row| {
            let table = Timetable::of(&row.spec().ok()?).ok()?;
            Some(CountedJob { name: row.name, table })
        });
        count_jobs(jobs.collect(), complete, now)
    });
    let counted = counting.await;
    counted.map_err(|error| OperationError::Failed(format!("firings cannot be counted: {error}")))
}

fn count_jobs(mut jobs: Vec<CountedJob>, mut complete: bool, now: DateTime<Utc>) -> FiringDay {
    let from = part_of(now);
    let (mut of_minutes, mut steps) = (vec![0; MINUTES], 0);
    let mut counted = 0;
    while counted < jobs.len() && steps < MAX_STEPS {
        steps += 1 + add(&jobs[counted].table, from, now, &mut of_minutes);
        counted += 1;
    }
    complete &= counted == jobs.len();
    jobs.truncate(counted);
    let total: u64 = of_minutes.iter().sum();
    let hot = hot::hot_minutes(&of_minutes);
    // A minute that has begun is counted for the next day.
    let at = |minute: usize| match from + minutes(minute) {
        begun if begun < now => begun + minutes(MINUTES),
        ahead => ahead,
    };
    let describe = |minute: &usize| {
        let (at, firings) = (at(*minute), of_minutes[*minute]);
        let fires = |job: &&CountedJob| job.table.due_times(at, at + minutes(1)).next().is_some();
        let firing: Vec<&str> = jobs.iter().filter(fires).map(|job| job.name.as_str()).collect();
        let named = firing.iter().take(JOBS_NAMED).map(|name| (*name).to_owned());
        HotMinute {
            at,
            firings,
            percent: firings * 100 / total.max(1),
            jobs: named.collect(),
            more_jobs: firing.len().saturating_sub(JOBS_NAMED),
        }
    };
    FiringDay {
        from,
        counts: of_minutes.chunks(PART_MINUTES).map(|part| part.iter().sum()).collect(),
        hot: hot.iter().take(MAX_HOT).map(describe).collect(),
        all_hot: hot.iter().map(|minute| at(*minute)).collect(),
        complete,
        jobs,
    }
}

/// Adds a job's firings within a day of `now` to those of each minute of the clock, and returns how many searches that took.
fn add(
    table: &Timetable,
    from: DateTime<Utc>,
    now: DateTime<Utc>,
    of_minutes: &mut [u64],
) -> usize {
    let until = now + minutes(MINUTES);
    let mut steps = 0;
    if table.count(now, until) > MINUTES as u64 {
        // More than one a minute: a jitter, which is shorter than the time between two, changes nothing here.
        for minute in 0..MINUTES + PART_MINUTES {
            let begin = from + minutes(minute);
            let (begin, end) = (begin.max(now), (begin + minutes(1)).min(until));
            of_minutes[minute % MINUTES] += table.count(begin, end);
            steps += 1;
        }
        return steps;
    }
    for due in table.due_times(now, until) {
        let minute = usize::try_from((due - from).num_minutes()).unwrap_or(0);
        of_minutes[minute % MINUTES] += 1;
        steps += 1;
    }
    steps
}

#[cfg(test)]
mod tests;
