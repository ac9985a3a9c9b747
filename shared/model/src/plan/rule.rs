//! The firings of a schedule without its limits.

use chrono::{DateTime, Utc};

use super::TimetableError;
use crate::cron::{DayRule, Dialect, Dst, Expression};
use crate::duration::to_millis;
use crate::job::{MAX_PERIOD, MIN_PERIOD, Schedule};
use crate::steps::step;
use crate::zone::Zone;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Rule {
    Cron { expression: Expression, zone: Zone, dst: Dst },
    Every { period_ms: i64, phase_ms: i64 },
    Once(DateTime<Utc>),
    Never,
}

impl Rule {
    pub(super) fn new(
        name: &str,
        schedule: &Schedule,
        zone: Zone,
        dst: Dst,
        days: Option<DayRule>,
    ) -> Result<Self, TimetableError> {
        Ok(match schedule {
            Schedule::Cron { expression } => {
                let expression = Expression::parse_with_days(expression, Dialect::Any, name, days)?;
                Self::Cron { expression, zone, dst }
            }
            Schedule::Every { period, phase }
                if (MIN_PERIOD..=MAX_PERIOD).contains(period) && phase < period =>
            {
                Self::Every { period_ms: to_millis(*period), phase_ms: to_millis(*phase) }
            }
            Schedule::Every { period, .. } => return Err(TimetableError::Period(*period)),
            Schedule::At { at } => Self::Once(at.instant(zone)),
            Schedule::None => Self::Never,
        })
    }

    /// Returns the first nominal time strictly after `from`.
    pub(super) fn next_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        step();
        match self {
            Self::Cron { expression, zone, dst } => expression.next_after(from, *zone, *dst),
            Self::Every { period_ms, phase_ms } => {
                let since_ms = from.timestamp_millis().checked_sub(*phase_ms)?;
                let periods = since_ms.div_euclid(*period_ms).checked_add(1)?;
                DateTime::from_timestamp_millis(
                    periods.checked_mul(*period_ms)?.checked_add(*phase_ms)?,
                )
            }
            Self::Once(at) => (from < *at).then_some(*at),
            Self::Never => None,
        }
    }
}
