//! Maps a zone's wall time to its instants: one, two, or none.

use chrono::{DateTime, FixedOffset, NaiveDateTime, Utc};

use super::{FARTHEST_OFFSET_S, Zone};

/// The instants at which a zone's clocks show a wall time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WallTimeMapping {
    /// One instant.
    Once(DateTime<Utc>),
    /// Two: the clocks were set back between them.
    Twice {
        /// The instant before the change.
        first: DateTime<Utc>,
        /// The instant after it.
        second: DateTime<Utc>,
    },
    /// None: the clocks were set forward over it.
    Never {
        /// The first instant after the change.
        resumes: DateTime<Utc>,
        /// Its instant by the offset after the change.
        earlier: DateTime<Utc>,
        /// Its instant by the offset before the change.
        later: DateTime<Utc>,
    },
}

impl WallTimeMapping {
    /// Returns one instant in any case: the first of two; in a gap, the first after the change.
    pub const fn one(self) -> DateTime<Utc> {
        match self {
            Self::Once(at) | Self::Twice { first: at, .. } | Self::Never { resumes: at, .. } => at,
        }
    }
}

impl Zone {
    /// Maps `wall` to the zone's instants. A time that cannot be represented maps to the nearest that can.
    pub fn map_wall_time(self, wall: NaiveDateTime) -> WallTimeMapping {
        let wall_s = wall.and_utc().timestamp();
        let fraction_ns = wall.and_utc().timestamp_subsec_nanos();
        let at = |second: i64| {
            DateTime::from_timestamp(second, fraction_ns).unwrap_or(DateTime::<Utc>::MAX_UTC)
        };
        let (from_s, to_s) = (wall_s - FARTHEST_OFFSET_S, wall_s + FARTHEST_OFFSET_S);
        let before_s = self.offset_s(from_s);
        let Some(change_s) = self.first_change_s(from_s, to_s) else {
            return WallTimeMapping::Once(at(wall_s - before_s));
        };
        let after_s = self.offset_s(change_s);
        let (first_s, second_s) = (wall_s - before_s, wall_s - after_s);
        match (first_s < change_s, second_s >= change_s) {
            (true, true) => WallTimeMapping::Twice { first: at(first_s), second: at(second_s) },
            (true, false) => WallTimeMapping::Once(at(first_s)),
            (false, true) => WallTimeMapping::Once(at(second_s)),
            (false, false) => WallTimeMapping::Never {
                resumes: DateTime::from_timestamp(change_s, 0).unwrap_or(DateTime::<Utc>::MAX_UTC),
                earlier: at(second_s),
                later: at(first_s),
            },
        }
    }

    /// Returns the first instant strictly after `from` at which the clocks show `wall` or, where they are set forward
    /// over it, more; `None`: they showed it before and do not again.
    pub(crate) fn next_wall_time(
        self,
        wall: NaiveDateTime,
        from: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        match self.map_wall_time(wall) {
            WallTimeMapping::Twice { first, second } => {
                [first, second].into_iter().find(|at| *at > from)
            }
            other => Some(other.one()).filter(|at| *at > from),
        }
    }

    /// Formats an instant as the zone's wall time with its offset from UTC, which is unambiguous.
    pub(crate) fn format_with_offset(self, at: DateTime<Utc>) -> String {
        let shown: DateTime<FixedOffset> = self.at(at);
        shown.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zone(name: &str) -> Zone {
        Zone::parse(name).unwrap()
    }

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn wall(text: &str) -> NaiveDateTime {
        text.parse().unwrap()
    }

    #[test]
    fn a_wall_time_is_shown_once_twice_or_never() {
        for (name, text, shown) in [
            (
                "Europe/Vienna",
                "2026-01-01T00:00:00",
                WallTimeMapping::Once(utc("2025-12-31T23:00:00Z")),
            ),
            (
                "Europe/Vienna",
                "2026-10-25T02:30:00",
                WallTimeMapping::Twice {
                    first: utc("2026-10-25T00:30:00Z"),
                    second: utc("2026-10-25T01:30:00Z"),
                },
            ),
            (
                "Europe/Vienna",
                "2026-03-29T02:30:00",
                WallTimeMapping::Never {
                    resumes: utc("2026-03-29T01:00:00Z"),
                    earlier: utc("2026-03-29T00:30:00Z"),
                    later: utc("2026-03-29T01:30:00Z"),
                },
            ),
            (
                "Europe/Vienna",
                "2026-03-29T03:00:00",
                WallTimeMapping::Once(utc("2026-03-29T01:00:00Z")),
            ),
            (
                "Europe/Vienna",
                "2026-10-25T03:00:00",
                WallTimeMapping::Once(utc("2026-10-25T02:00:00Z")),
            ),
            (
                "Pacific/Apia",
                "2011-12-29T23:59:59",
                WallTimeMapping::Once(utc("2011-12-30T09:59:59Z")),
            ),
            (
                "Pacific/Apia",
                "2011-12-31T00:00:00",
                WallTimeMapping::Once(utc("2011-12-30T10:00:00Z")),
            ),
        ] {
            assert_eq!(zone(name).map_wall_time(wall(text)), shown, "{text} in {name}");
        }
        let missing = zone("Pacific/Apia").map_wall_time(wall("2011-12-30T12:00:00"));
        assert_eq!(missing.one(), utc("2011-12-30T10:00:00Z"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_what_the_clocks_of_the_instants_show(
            zone in prop::sample::select(Zone::all().collect::<Vec<_>>()),
            second in 0_i64..4_000_000_000,
        ) {
            let at = DateTime::from_timestamp(second, 0).unwrap();
            let wall = zone.at(at).naive_local();
            match zone.map_wall_time(wall) {
                WallTimeMapping::Once(one) => prop_assert_eq!(one, at),
                WallTimeMapping::Twice { first, second } => {
                    prop_assert!(first < second && (at == first || at == second));
                    prop_assert_eq!(zone.at(first).naive_local(), wall);
                    prop_assert_eq!(zone.at(second).naive_local(), wall);
                }
                never @ WallTimeMapping::Never { .. } => prop_assert!(false, "{never:?}"),
            }
        }
    }
}
