//! What became of the ticks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What became of the ticks of a job on this instance since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JobCounts {
    /// The work ran here and succeeded.
    pub succeeded: u64,
    /// The work ran here and failed, or panicked.
    pub failed: u64,
    /// The work began here, and its lock was lost, or may have been before its end.
    pub lost: u64,
    /// Another instance has run it, or runs the one before.
    pub skipped: u64,
    /// It passed while the work of an earlier tick ran here.
    pub overrun: u64,
    /// It passed while this instance stood still, or could not reach the database.
    pub missed: u64,
}

/// One count of [`JobCounts`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    Succeeded,
    Failed,
    Lost,
    Skipped,
    Overrun,
    Missed,
}

/// The counts of one job, which its runner adds to.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Arc<[AtomicU64; 6]>);

impl Counts {
    pub(super) fn add(&self, count: Count, more: u64) {
        self.0[count as usize].fetch_add(more, Ordering::Relaxed);
    }

    fn read(&self) -> JobCounts {
        let [succeeded, failed, lost, skipped, overrun, missed] =
            [0, 1, 2, 3, 4, 5].map(|index: usize| self.0[index].load(Ordering::Relaxed));
        JobCounts { succeeded, failed, lost, skipped, overrun, missed }
    }
}

/// The counts of all jobs of this instance. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Statistics(Arc<Mutex<BTreeMap<String, Counts>>>);

impl Statistics {
    pub(super) fn of(&self, job: &str) -> Counts {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.entry(job.to_owned()).or_default().clone()
    }

    /// Reads the counts of a job; zeros if there is no such job.
    pub fn job(&self, name: &str) -> JobCounts {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.get(name).map(Counts::read).unwrap_or_default()
    }

    /// Reads the counts of all jobs, by their names.
    pub fn all(&self) -> BTreeMap<String, JobCounts> {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.iter().map(|(name, counts)| (name.clone(), counts.read())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_is_read_as_it_was_added() {
        let statistics = Statistics::default();
        let counts = statistics.of("a");
        let all = [
            Count::Succeeded,
            Count::Failed,
            Count::Lost,
            Count::Skipped,
            Count::Overrun,
            Count::Missed,
        ];
        for (more, count) in all.into_iter().enumerate() {
            counts.add(count, more as u64 + 1);
        }
        let expected =
            JobCounts { succeeded: 1, failed: 2, lost: 3, skipped: 4, overrun: 5, missed: 6 };
        assert_eq!(statistics.job("a"), expected);
        assert_eq!(statistics.job("b"), JobCounts::default());
        assert_eq!(statistics.all().len(), 1);
    }
}
