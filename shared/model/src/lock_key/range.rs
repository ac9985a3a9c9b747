//! Ranges of lock keys, one for each service.

use std::fmt;

use serde::Serialize;

use super::MAX_KEY;
use crate::quoting::quoted;

/// Number of keys of a range, unless somebody says otherwise.
pub const DEFAULT_KEYS: u32 = 50;
/// Maximum number of keys of a range.
pub const MAX_KEYS: u32 = 10_000;
/// Maximum number of ranges of a platform.
pub const MAX_RANGES: usize = 10_000;
/// The longest name of a service, in bytes.
pub const MAX_SERVICE_BYTES: usize = 100;

/// The keys of one service: `keys` numbers from `first` on, all of them from −[`MAX_KEY`] to [`MAX_KEY`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyRange {
    service: String,
    #[serde(rename = "start")]
    first: i64,
    keys: u32,
}

/// Why a range is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RangeError {
    /// No name of a service.
    #[error(
        "{} is no service: a job is named <service>.<jobName>, and a service has 1 to {MAX_SERVICE_BYTES} of A-Z a-z 0-9 _ -",
        quoted(.0)
    )]
    Service(String),
    /// Too few or too many keys.
    #[error("{0} is no number of keys; 1 to {MAX_KEYS}")]
    Keys(i64),
    /// It reaches beyond what a double holds.
    #[error(
        "{first} to {last} reaches beyond 2^53 - 1, where Node.js rounds numbers; stay between -{MAX_KEY} and {MAX_KEY}"
    )]
    Bounds {
        /// The first key.
        first: i64,
        /// The last one.
        last: i128,
    },
}

impl KeyRange {
    /// Makes a range.
    ///
    /// # Errors
    ///
    /// [`RangeError`]: the name, the number of keys or the numbers are not allowed.
    pub fn new(service: &str, first: i64, keys: u32) -> Result<Self, RangeError> {
        check_service(service)?;
        if !(1..=MAX_KEYS).contains(&keys) {
            return Err(RangeError::Keys(keys.into()));
        }
        let last = i128::from(first) + i128::from(keys) - 1;
        if first < -MAX_KEY || last > i128::from(MAX_KEY) {
            return Err(RangeError::Bounds { first, last });
        }
        Ok(Self { service: service.to_owned(), first, keys })
    }

    /// Returns the service.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns the first key.
    pub const fn first(&self) -> i64 {
        self.first
    }

    /// Returns the last key.
    pub const fn last(&self) -> i64 {
        self.first + self.keys as i64 - 1
    }

    /// Returns the number of keys.
    pub const fn keys(&self) -> u32 {
        self.keys
    }

    /// Returns whether a key is one of them.
    pub const fn contains(&self, key: i64) -> bool {
        self.first <= key && key <= self.last()
    }

    /// Returns whether a key is in both.
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last() && other.first <= self.last()
    }
}

/// Displays as `billing (1300 to 1349)`.
impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} to {})", self.service, self.first, self.last())
    }
}

/// Checks a service's name: what a job's name may hold before its first dot.
///
/// # Errors
///
/// [`RangeError::Service`].
pub fn check_service(service: &str) -> Result<(), RangeError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=MAX_SERVICE_BYTES).contains(&service.len()) && service.bytes().all(fits) {
        Ok(())
    } else {
        Err(RangeError::Service(service.to_owned()))
    }
}

/// Returns the service in a job's name, `<service>.<jobName>`; `None`: the name has another form.
pub fn service_of(job: &str) -> Option<&str> {
    let (service, name) = job.split_once('.')?;
    (!name.is_empty() && check_service(service).is_ok()).then_some(service)
}

/// Ranges in the order of their numbers, to be searched by key. They do not overlap.
#[derive(Debug)]
pub struct SortedRanges<'a>(Vec<&'a KeyRange>);

impl<'a> SortedRanges<'a> {
    /// Sorts ranges.
    pub fn new(ranges: impl IntoIterator<Item = &'a KeyRange>) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().collect();
        sorted.sort_by_key(|range| range.first);
        Self(sorted)
    }

    /// Returns the range that holds a key.
    pub fn of_key(&self, key: i64) -> Option<&'a KeyRange> {
        let behind = self.0.partition_point(|range| range.first <= key);
        self.0[..behind].last().copied().filter(|range| range.contains(key))
    }

    /// Returns the first range with a key of this one.
    pub fn first_overlap(&self, range: &KeyRange) -> Option<&'a KeyRange> {
        let from = self.0.partition_point(|other| other.last() < range.first);
        self.0.get(from).copied().filter(|other| other.overlaps(range))
    }
}

/// How many keys of a range jobs use, and the first that none uses. `used` holds each used key once, in order.
pub fn usage(range: &KeyRange, used: &[i64]) -> (usize, Option<i64>) {
    let from = used.partition_point(|key| *key < range.first);
    let used: Vec<_> = used[from..].iter().take_while(|key| **key <= range.last()).collect();
    let free = (range.first..=range.last()).zip(&used).find(|(key, used)| *key != ***used);
    let next = match free {
        Some((key, _)) => Some(key),
        None => Some(range.first + used.len() as i64).filter(|key| range.contains(*key)),
    };
    (used.len(), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(service: &str, first: i64, keys: u32) -> KeyRange {
        KeyRange::new(service, first, keys).unwrap()
    }

    #[test]
    fn a_range_stays_where_every_client_reads_its_numbers() {
        assert_eq!(range("a", MAX_KEY, 1).last(), MAX_KEY);
        assert_eq!(range("a", -MAX_KEY, 1).first(), -MAX_KEY);
        for (first, keys) in [(MAX_KEY, 2), (-MAX_KEY - 1, 5), (i64::MAX, 50), (i64::MIN, 1)] {
            let refused = KeyRange::new("a", first, keys);
            assert!(matches!(refused, Err(RangeError::Bounds { .. })), "{first}: {refused:?}");
        }
        for keys in [0, MAX_KEYS + 1, u32::MAX] {
            assert_eq!(KeyRange::new("a", 1, keys), Err(RangeError::Keys(keys.into())));
        }
        for service in ["", "a.b", "a b", "é", &"x".repeat(MAX_SERVICE_BYTES + 1)] {
            let refused = KeyRange::new(service, 1, 1);
            assert_eq!(refused, Err(RangeError::Service(service.to_owned())));
        }
    }

    #[test]
    fn ranges_overlap_where_they_share_a_key() {
        let one = range("a", 100, 50);
        for (first, keys, overlaps) in
            [(50, 50, false), (51, 50, true), (149, 1, true), (150, 9, false), (90, 900, true)]
        {
            let other = range("b", first, keys);
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (overlaps, overlaps));
        }
    }

    #[test]
    fn the_service_is_what_stands_before_the_first_dot() {
        for (job, service) in [
            ("billing.run", Some("billing")),
            ("billing.run.2", Some("billing")),
            ("billing", None),
            ("billing.", None),
            (".run", None),
            ("a b.run", None),
        ] {
            assert_eq!(service_of(job), service, "{job}");
        }
    }

    #[test]
    fn the_range_of_a_key_is_found() {
        let all = [range("b", 100, 50), range("a", -10, 5), range("c", 150, 1)];
        let sorted = SortedRanges::new(&all);
        for (key, service) in [
            (-11, None),
            (-10, Some("a")),
            (-5, None),
            (99, None),
            (100, Some("b")),
            (149, Some("b")),
            (150, Some("c")),
            (151, None),
        ] {
            assert_eq!(sorted.of_key(key).map(KeyRange::service), service, "{key}");
        }
    }

    #[test]
    fn the_next_key_is_the_first_that_no_job_uses() {
        let all = range("a", 10, 3);
        for (used, expected) in [
            (&[][..], (0, Some(10))),
            (&[9, 13], (0, Some(10))),
            (&[10], (1, Some(11))),
            (&[10, 12], (2, Some(11))),
            (&[11, 12], (2, Some(10))),
            (&[9, 10, 11, 12, 13], (3, None)),
        ] {
            assert_eq!(usage(&all, used), expected, "{used:?}");
        }
    }
}
