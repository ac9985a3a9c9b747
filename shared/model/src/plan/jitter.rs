//! Jitter: spreads the firings of many jobs at one nominal time.
//!
//! # Guarantees
//!
//! The delay of a firing depends only on the job's name and the nominal time, so every caller gets the same, in every
//! release. It is less than the job's `jitter`, and less than the time to the next nominal time: firings become due
//! in their order, each before the next one's nominal time.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::duration::to_millis;
use crate::hash;

/// The jitter of a job's firings.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Jitter {
    name: String,
    max_ms: i64,
}

impl Jitter {
    pub(super) fn new(name: &str, max: Duration) -> Self {
        Self { name: name.to_owned(), max_ms: to_millis(max) }
    }

    /// Returns when the firing at `nominal` becomes due; `next` is the nominal time after it.
    pub(super) fn due(&self, nominal: DateTime<Utc>, next: Option<DateTime<Utc>>) -> DateTime<Utc> {
        let left_ms = next.map_or(self.max_ms, |next| (next - nominal).num_milliseconds());
        let span_ms = u64::try_from(self.max_ms.min(left_ms)).unwrap_or(0).max(1);
        let hash = hash::of(&self.name, &nominal.timestamp_millis().to_be_bytes());
        let later_ms = i64::try_from(hash::below(span_ms, hash)).unwrap_or(0);
        nominal.checked_add_signed(TimeDelta::milliseconds(later_ms)).unwrap_or(nominal)
    }

    /// Returns the exclusive upper bound of the delay.
    pub(super) const fn max_delay(&self) -> TimeDelta {
        TimeDelta::milliseconds(self.max_ms)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn a_firing_is_spread_by_the_same_in_every_release() {
        let jitter = Jitter::new("billing.run", Duration::from_mins(10));
        let later = |nominal| (jitter.due(at(nominal), None) - at(nominal)).num_milliseconds();
        assert_eq!([0, 3_600, 7_200].map(later), [316_054, 354_520, 60_490]);
    }

    #[test]
    fn jobs_of_one_minute_are_spread_over_the_whole_of_it() {
        let late = |number| {
            let jitter = Jitter::new(&format!("job{number}"), Duration::from_mins(1));
            (jitter.due(at(60), Some(at(3_600))) - at(60)).num_seconds() / 6
        };
        let mut tenths = [0; 10];
        for number in 0..10_000 {
            tenths[late(number) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1_150).contains(count)), "{tenths:?}");
    }

    proptest! {
        #[test]
        fn a_firing_is_due_before_the_next_nominal_time_and_in_less_than_the_jitter(
            name in "[a-z.]{1,20}",
            max_ms in 1_000_u64..86_400_000,
            nominal in 0_i64..4_000_000_000,
            next in prop::option::of(1_i64..100_000),
        ) {
            let jitter = Jitter::new(&name, Duration::from_millis(max_ms));
            let next = next.map(|seconds| at(nominal + seconds));
            let due = jitter.due(at(nominal), next);
            prop_assert_eq!(due, jitter.due(at(nominal), next));
            prop_assert!(at(nominal) <= due && due - at(nominal) < jitter.max_delay());
            prop_assert!(next.is_none_or(|next| due < next));
        }
    }
}
