//! Decides about new and changed ranges: nothing overlaps, and no range leaves a key behind that a job uses.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::MAX_KEY;
use super::range::{
    DEFAULT_KEYS, KeyRange, MAX_RANGES, RangeError, SortedRanges, check_service, service_of,
};
use super::registry::Registry;

/// The first key of the first range that is assigned without a start. Lower numbers are those that people write by heart.
const FIRST_START: i64 = 1_000;
/// Ranges without a start begin at a multiple of this, so that people recognise them.
const START_STEP: i64 = 50;

/// A range that somebody wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeRequest {
    /// The service.
    pub service: String,
    /// The first key; `None`: that of its present range, or behind all ranges.
    pub first: Option<i64>,
    /// Number of keys; `None`: that of its present range, or [`DEFAULT_KEYS`].
    pub keys: Option<u32>,
}

/// What becomes of a service's range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeChange {
    /// The range until now; `None`: it is new.
    pub before: Option<KeyRange>,
    /// The range from now on; the same as `before` where nothing changes.
    pub after: KeyRange,
}

impl RangeChange {
    /// Returns whether there is something to write.
    pub fn is_change(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }
}

/// Why a range is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The range itself is not allowed.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// A key would be in two ranges.
    #[error("{wanted} overlaps {other}; `sexton keys list` shows which numbers are free")]
    Overlap {
        /// The range.
        wanted: KeyRange,
        /// The one in its way, which is there or is requested as well.
        other: KeyRange,
    },
    /// A job uses a key that the range would lose.
    #[error("{job} uses {key}, which {service} would lose; give the job another lock_key first")]
    InUse {
        /// The job.
        job: String,
        /// Its key.
        key: i64,
        /// The service.
        service: String,
    },
    /// The largest numbers are taken.
    #[error("no {0} numbers are free behind the ranges there are; choose a start")]
    NoSpace(u32),
    /// The platform has as many ranges as it can.
    #[error("there would be more than {MAX_RANGES} ranges")]
    TooMany,
}

/// Decides about requests in their order; of one service at most one. All of them are granted or, with the index and the
/// reason of each that is refused, none.
///
/// # Errors
///
/// Every [`Refusal`], with the index of its request.
pub fn plan(
    registry: &Registry,
    requests: &[RangeRequest],
) -> Result<Vec<RangeChange>, Vec<(usize, Refusal)>> {
    let present: HashMap<&str, &KeyRange> =
        registry.ranges.iter().map(|range| (range.service(), range)).collect();
    let named: HashSet<&str> = requests.iter().map(|request| request.service.as_str()).collect();
    let mut planned = Planned {
        behind: registry.ranges.iter().map(|range| range.last() + 1).max(),
        others: registry.ranges.iter().filter(|range| !named.contains(range.service())).collect(),
        taken: registry
            .jobs
            .iter()
            .filter_map(|(job, key)| Some(((*key)?, job.as_str())))
            .collect(),
    };
    let (mut changes, mut refusals) = (Vec::new(), Vec::new());
    // Those with a start first: what has none gives way.
    let (fixed, free): (Vec<usize>, Vec<usize>) = (0..requests.len()).partition(|index| {
        let request = &requests[*index];
        request.first.is_some() || present.contains_key(request.service.as_str())
    });
    for index in fixed.into_iter().chain(free) {
        let request = &requests[index];
        let before = present.get(request.service.as_str()).copied();
        match planned.decide(request, before) {
            Ok(after) => changes.push((index, RangeChange { before: before.cloned(), after })),
            Err(refusal) => refusals.push((index, refusal)),
        }
    }
    changes.sort_by_key(|(index, _)| *index);
    refusals.extend(overlaps(&planned.others, &changes));
    let added = changes.iter().filter(|(_, change)| change.before.is_none()).count();
    if registry.ranges.len() + added > MAX_RANGES {
        refusals.push((0, Refusal::TooMany));
    }
    refusals.sort_by_key(|(index, _)| *index);
    if refusals.is_empty() {
        Ok(changes.into_iter().map(|(_, change)| change).collect())
    } else {
        Err(refusals)
    }
}

struct Planned<'a> {
    /// Keys with the jobs that use them. The database allows one job for each, and this does not rely on it.
    taken: BTreeSet<(i64, &'a str)>,
    /// The ranges of services without a request.
    others: Vec<&'a KeyRange>,
    /// The first number behind all ranges, those planned included.
    behind: Option<i64>,
}

impl Planned<'_> {
    fn decide(
        &mut self,
        request: &RangeRequest,
        before: Option<&KeyRange>,
    ) -> Result<KeyRange, Refusal> {
        check_service(&request.service)?;
        let keys = request.keys.or(before.map(KeyRange::keys)).unwrap_or(DEFAULT_KEYS);
        let after = match request.first.or(before.map(KeyRange::first)) {
            Some(first) => KeyRange::new(&request.service, first, keys)?,
            None => self.next_free(&request.service, keys)?,
        };
        if let Some((key, job)) = before.and_then(|before| self.lost(before, &after)) {
            let service = request.service.clone();
            return Err(Refusal::InUse { job: job.to_owned(), key, service });
        }
        self.behind = self.behind.max(Some(after.last() + 1));
        Ok(after)
    }

    /// Returns the first key that a job of the service has in one range and not in the other.
    fn lost(&self, before: &KeyRange, after: &KeyRange) -> Option<(i64, &str)> {
        let is_lost = |(key, job): &(i64, &str)| {
            !after.contains(*key) && service_of(job) == Some(before.service())
        };
        self.within(before.first(), before.last()).find(is_lost)
    }

    /// Returns the keys from `first` to `last` that jobs use, in their order.
    fn within(&self, first: i64, last: i64) -> impl DoubleEndedIterator<Item = (i64, &str)> {
        self.taken.range((first, "")..(last + 1, "")).copied()
    }

    /// Returns the first range behind all others in which no job of another service has a key.
    fn next_free(&self, service: &str, keys: u32) -> Result<KeyRange, Refusal> {
        let mut first = self.behind.unwrap_or(FIRST_START).max(FIRST_START);
        loop {
            first = (first + START_STEP - 1).div_euclid(START_STEP) * START_STEP;
            if first > MAX_KEY {
                return Err(Refusal::NoSpace(keys));
            }
            let range = match KeyRange::new(service, first, keys) {
                Ok(range) => range,
                Err(RangeError::Bounds { .. }) => return Err(Refusal::NoSpace(keys)),
                Err(error) => return Err(error.into()),
            };
            match self
                .within(range.first(), range.last())
                .rev()
                .find(|(_, job)| service_of(job) != Some(service))
            {
                // Each turn passes a key of a job, so there are no more turns than jobs.
                Some((key, _)) => first = key + 1,
                None => return Ok(range),
            }
        }
    }
}

/// Returns, for each change, the first range that it overlaps.
fn overlaps(others: &[&KeyRange], changes: &[(usize, RangeChange)]) -> Vec<(usize, Refusal)> {
    let sorted = SortedRanges::new(others.iter().copied());
    let mut by_first: Vec<_> = changes.iter().collect();
    by_first.sort_by_key(|(index, change)| (change.after.first(), *index));
    let mut found = Vec::new();
    let mut widest: Option<&KeyRange> = None;
    for (index, change) in by_first {
        let wanted = &change.after;
        let beside = widest.filter(|other| other.overlaps(wanted));
        if let Some(other) = beside.or_else(|| sorted.first_overlap(wanted)) {
            let (wanted, other) = (wanted.clone(), other.clone());
            found.push((*index, Refusal::Overlap { wanted, other }));
        }
        if widest.is_none_or(|other| other.last() < wanted.last()) {
            widest = Some(wanted);
        }
    }
    found
}

#[cfg(test)]
mod tests;
