//! Decides when an open attempt counts as lost, as one observer sees it.
//!
//! An observer reads the open attempts over and over and remembers since when it has seen each one's last renewal. An
//! attempt is lost when the *same* renewal has been seen for a whole lease by the observer's own monotonic clock. No
//! two clocks are compared, so nothing depends on changes of the database's clock, or on its distance from other
//! clocks: a worker counts its lease from the instant before it sent the renewal, the observer from the instant after
//! it read it, which is later.
//!
//! An observer that has just started has seen nothing yet, and needs a whole lease as well.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, Instant};

/// An observer's record of the open attempts: for each `K` its last renewal `R`, and since when it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseObserver<K, R> {
    seen: BTreeMap<K, (R, Instant)>,
}

impl<K, R> Default for LeaseObserver<K, R> {
    fn default() -> Self {
        Self { seen: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, R: PartialEq + Clone> LeaseObserver<K, R> {
    /// Records a page of a reading in the order of the keys: everything behind `after` (from the start: `None`), up
    /// to the page's last key or, if `whole`, to the end. `read_by` is an instant *after* the answer had come.
    /// Recorded keys in that range that are not in the page are forgotten. Returns since when each renewal of the
    /// page has been seen.
    pub fn observe_page(
        &mut self,
        after: Option<K>,
        page: &[(K, R)],
        whole: bool,
        read_by: Instant,
    ) -> Vec<Instant> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let to = match page.last() {
            Some((last, _)) if !whole => Bound::Included(*last),
            None if !whole => return Vec::new(),
            _ => Bound::Unbounded,
        };
        let mut before = BTreeMap::new();
        let range: Vec<K> = self.seen.range((from, to)).map(|(key, _)| *key).collect();
        for key in range {
            before.extend(self.seen.remove_entry(&key));
        }
        let mut since = Vec::with_capacity(page.len());
        for (key, renewal) in page {
            let first = match before.get(key) {
                Some((known, first)) if known == renewal => *first,
                _ => read_by,
            };
            self.seen.insert(*key, (renewal.clone(), first));
            since.push(first);
        }
        since
    }

    /// Returns the number of recorded attempts.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns whether no attempt is recorded.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// Returns whether a lease of this length is over by `now`, if the same renewal has been seen since `since`. `now` is
/// an instant *before* the statement that acts on the answer.
pub fn is_expired(since: Instant, now: Instant, lease: Duration) -> bool {
    now.saturating_duration_since(since) >= lease
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_is_over_when_the_same_renewal_was_seen_for_its_whole_length() {
        let begin = Instant::now();
        let lease = Duration::from_secs(20);
        let mut observed = LeaseObserver::default();
        // An observer that has just started knows nothing, however old the renewal is.
        assert_eq!(observed.observe_page(None, &[(1, 'a')], true, begin), [begin]);
        assert_eq!(observed.observe_page(None, &[(1, 'a')], true, at(begin, 19)), [begin]);
        assert!(!is_expired(begin, at(begin, 19), lease));
        assert!(is_expired(begin, at(begin, 20), lease));
        // A renewal at the last moment restarts the lease.
        let renewed = observed.observe_page(None, &[(1, 'b')], true, at(begin, 21));
        assert_eq!(renewed, [at(begin, 21)]);
        assert!(!is_expired(renewed[0], at(begin, 40), lease));
        assert!(is_expired(renewed[0], at(begin, 41), lease));
        // An instant before the first reading counts as no time.
        assert!(!is_expired(at(begin, 5), begin, Duration::from_millis(1)));
    }

    #[test]
    fn an_attempt_that_was_not_there_in_between_is_seen_anew() {
        let begin = Instant::now();
        let mut observed = LeaseObserver::default();
        observed.observe_page(None, &[(1, 'a'), (2, 'a')], true, begin);
        observed.observe_page(None, &[(2, 'a')], true, at(begin, 1));
        assert_eq!(observed.len(), 1);
        let again = observed.observe_page(None, &[(1, 'a'), (2, 'a')], true, at(begin, 2));
        assert_eq!(again, [at(begin, 2), begin]);
    }

    #[test]
    fn a_reading_that_broke_off_forgets_nothing_of_what_it_did_not_reach() {
        let begin = Instant::now();
        let mut observed = LeaseObserver::default();
        observed.observe_page(None, &[(1, 'a'), (3, 'a'), (5, 'a')], true, begin);
        // The first page only: 3 has ended, 5 was on another page.
        observed.observe_page(None, &[(1, 'a'), (4, 'a')], false, at(begin, 1));
        assert_eq!(observed.observe_page(None, &[], false, at(begin, 2)), []);
        let since = observed.observe_page(Some(4), &[(5, 'a')], true, at(begin, 3));
        assert_eq!((since, observed.len()), (vec![begin], 3));
    }

    proptest! {
        /// For any readings in any pages, `since` is the first reading of the unbroken run of readings in which the
        /// attempt had this very renewal.
        #[test]
        fn what_is_remembered_is_the_first_of_an_unbroken_run(
            readings in prop::collection::vec(
                prop::collection::btree_map(0_u8..6, 0_u8..2, 0..6), 1..12),
            size in 1_usize..4,
        ) {
            let begin = Instant::now();
            let mut observed = LeaseObserver::default();
            for (round, reading) in readings.iter().enumerate() {
                let read_by = at(begin, round as u64);
                let rows: Vec<(u8, u8)> = reading.iter().map(|(key, renewal)| (*key, *renewal)).collect();
                let mut after = None;
                let mut since = Vec::new();
                let mut remaining = &rows[..];
                loop {
                    let (page, more) = remaining.split_at(size.min(remaining.len()));
                    let whole = more.is_empty() && page.len() < size;
                    since.extend(observed.observe_page(after, page, whole, read_by));
                    after = page.last().map(|(key, _)| *key).or(after);
                    remaining = more;
                    if whole { break; }
                }
                prop_assert_eq!(observed.len(), rows.len());
                for ((key, renewal), since) in rows.iter().zip(since) {
                    let run = readings[..=round].iter().rev()
                        .take_while(|reading| reading.get(key) == Some(renewal)).count();
                    prop_assert_eq!(since, at(begin, (round + 1 - run) as u64));
                }
            }
        }
    }
}
