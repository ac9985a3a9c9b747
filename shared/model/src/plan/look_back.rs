//! The firing before an instant.

use chrono::{DateTime, TimeDelta, Utc};

use super::Timetable;

/// The database's instants are whole microseconds.
pub(crate) const RESOLUTION: TimeDelta = TimeDelta::microseconds(1);
/// How far back a firing is searched, in growing steps: 8 years contain a 29 February.
const LOOK_BACK_STEPS: [TimeDelta; 6] = [
    TimeDelta::minutes(1),
    TimeDelta::hours(1),
    TimeDelta::days(1),
    TimeDelta::days(32),
    TimeDelta::days(367),
    TimeDelta::days(8 * 366 + 1),
];

impl Timetable {
    /// Returns the last firing before `at`, by its nominal time, within eight years.
    pub fn last_before(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.last_between(DateTime::<Utc>::MIN_UTC, at)
    }

    /// Returns the last firing after `from` and before `at`, within eight years. A timetable only computes the next one,
    /// so this searches an earlier instant that a firing follows, and then bisects to the latest such instant.
    pub(crate) fn last_between(
        &self,
        from: DateTime<Utc>,
        at: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let first_after = |start| self.next_after(start).filter(|next| *next < at);
        let mut found =
            LOOK_BACK_STEPS.iter().find_map(|ago| first_after((at - *ago).max(from)))?;
        let mut none_after = at;
        while none_after - found > RESOLUTION {
            let middle = found + (none_after - found) / 2;
            match first_after(middle) {
                Some(later) => found = later,
                None => none_after = middle,
            }
        }
        Some(found)
    }
}
