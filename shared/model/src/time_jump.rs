//! Decides whether to hold catch-up: whether the time since a planner last read the clock is an absence of the
//! schedulers, or needs a person's decision.
//!
//! The database's clock is the only one that counts, and the last instant at which a planner read it is stored beside
//! the jobs. A clock that was set, a virtual machine that was paused, a backup that was restored: all of them show as
//! a jump from that instant to the present. A real absence of all schedulers looks the same, and nothing in the
//! database distinguishes the two; only their length does, so a setting says how long an absence may be
//! ([`detect_jump`]'s `limit`). A step back is never an absence.
//!
//! # What it does not do
//!
//! It judges two instants. The store keeps the last one, and the held firings.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// A step back of at most this much is a corrected clock, or a slightly earlier reading by another planner.
pub const MAX_BACKWARD_STEP: TimeDelta = TimeDelta::minutes(1);

/// The reason for a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeJump {
    /// The database's time is ahead of the last reading by this much.
    Forward(TimeDelta),
    /// It is behind by this much.
    Backward(TimeDelta),
}

impl TimeJump {
    /// Returns the value in the database and in `--json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forward(_) => "forward",
            Self::Backward(_) => "backward",
        }
    }

    /// Returns the size of the jump.
    pub const fn by(self) -> TimeDelta {
        match self {
            Self::Forward(by) | Self::Backward(by) => by,
        }
    }
}

/// Returns the jump between the last instant that a planner saw and `now`, if there is one. `last_seen` is `None`
/// before the first reading, when no jump can be detected.
pub fn detect_jump(
    last_seen: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    limit: Duration,
) -> Option<TimeJump> {
    let passed = now - last_seen?;
    if passed < -MAX_BACKWARD_STEP {
        return Some(TimeJump::Backward(-passed));
    }
    // A limit beyond any duration is never exceeded.
    let limit = TimeDelta::from_std(limit).ok()?;
    (passed > limit).then_some(TimeJump::Forward(passed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(1_800_000_000_000 + ms).unwrap()
    }

    #[test]
    fn an_absence_up_to_the_limit_is_one_and_a_millisecond_more_is_a_jump() {
        assert_eq!(detect_jump(Some(at(0)), at(0), HOUR), None);
        assert_eq!(detect_jump(Some(at(0)), at(3_600_000), HOUR), None);
        let over = TimeDelta::milliseconds(3_600_001);
        assert_eq!(detect_jump(Some(at(0)), at(3_600_001), HOUR), Some(TimeJump::Forward(over)));
    }

    #[test]
    fn a_clock_that_stands_back_by_more_than_a_minute_has_jumped_whatever_the_limit() {
        for limit in [Duration::ZERO, HOUR, Duration::MAX] {
            assert_eq!(detect_jump(Some(at(0)), at(-60_000), limit), None);
            let back = TimeDelta::milliseconds(60_001);
            assert_eq!(
                detect_jump(Some(at(0)), at(-60_001), limit),
                Some(TimeJump::Backward(back))
            );
        }
    }

    #[test]
    fn nothing_is_known_before_anybody_looked() {
        assert_eq!(detect_jump(None, at(0), Duration::ZERO), None);
    }

    proptest! {
        #[test]
        fn a_planner_that_looks_often_enough_never_sees_a_jump(
            steps in prop::collection::vec(-60_000_i64..=3_600_000, 1..40),
        ) {
            let mut seen = at(0);
            for step in steps {
                let now = seen + TimeDelta::milliseconds(step);
                prop_assert_eq!(detect_jump(Some(seen), now, HOUR), None);
                seen = now;
            }
        }

        #[test]
        fn a_jump_is_told_with_its_length_and_only_once(ms in -90_000_000_000_i64..90_000_000_000) {
            let jump = detect_jump(Some(at(0)), at(ms), HOUR);
            let expected = match ms {
                ..-60_000 => Some(("backward", -ms)),
                3_600_001.. => Some(("forward", ms)),
                _ => None,
            };
            prop_assert_eq!(jump.map(|jump| (jump.as_str(), jump.by().num_milliseconds())), expected);
            // Once it is seen, the present becomes the last reading.
            prop_assert_eq!(detect_jump(Some(at(ms)), at(ms), HOUR), None);
        }
    }
}
