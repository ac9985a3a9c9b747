//! The effects of a zone's clock changes on the firings of an expression, computed beforehand.
//!
//! One [`Anomaly`] for each change that affects the expression. It agrees with the search of `zoned`: both use the
//! same masks at the same clock changes, and tests compare the two with each other and with a walk by the minute.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::zoned::ClockChange;
use super::{Dst, Expression, Zoned};
use crate::text_enum::text_enum;
use crate::zone::Zone;

/// The effect of a clock change on wall times of an expression that it skips or repeats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnomalyKind {
    /// The clocks skip them: one firing for all of them, at the first instant after the gap.
    Moved,
    /// The clocks skip them, and nothing fires for them.
    Skipped,
    /// The clocks show them twice, and both fire.
    Doubled,
    /// The clocks show them twice, and only the first fires.
    FirstPass,
}

text_enum!(AnomalyKind {
    Moved => "moved",
    Skipped => "skipped",
    Doubled => "doubled",
    FirstPass => "first_pass",
});

/// The effect of one clock change on an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anomaly {
    /// The kind of effect.
    pub kind: AnomalyKind,
    /// The first instant after the change.
    pub change_at: DateTime<Utc>,
    /// The offset from UTC before it, in seconds.
    pub offset_before_s: i32,
    /// The offset from UTC after it, in seconds.
    pub offset_after_s: i32,
    /// The first wall time affected.
    pub first_wall: NaiveDateTime,
    /// The last one.
    pub last_wall: NaiveDateTime,
    /// Number of wall times affected, at least 1.
    pub walls: u32,
    /// When the first of them fires (of moved ones, all of them); `None` if none does.
    pub fires_at: Option<DateTime<Utc>>,
    /// When the clocks show the first of them again; `None` where they skip it.
    pub again_at: Option<DateTime<Utc>>,
    /// Whether the instant after the gap is a firing anyway, so that the two are one.
    pub merged: bool,
}

impl Expression {
    /// Returns the anomalies of the clock changes after `from`, up to and including `to`; ascending, at most one for
    /// each change.
    ///
    /// Costs a read of the zone's data for every two days in between, and some thirty for each change; no step for a wall
    /// time, of which a day that was skipped has up to 86,400.
    pub fn anomalies(
        &self,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        zone: Zone,
        dst: Dst,
    ) -> Vec<Anomaly> {
        let zoned = Zoned { expression: self, zone, dst };
        let (mut from_s, to_s) = (from.timestamp(), to.timestamp());
        let mut anomalies = Vec::new();
        while let Some(clock_change) = zoned.clock_change(from_s, to_s) {
            anomalies.extend(zoned.anomaly(clock_change));
            from_s = clock_change.at_s;
        }
        anomalies
    }

    /// Returns whether it describes intervals: all their wall times fire whenever the clocks show them.
    pub fn is_wildcard(&self) -> bool {
        self.wildcard
    }
}

impl Zoned<'_> {
    fn anomaly(&self, clock_change: ClockChange) -> Option<Anomaly> {
        let ClockChange { at_s, before_s, after_s } = clock_change;
        let (low_s, high_s) = (before_s.min(after_s), before_s.max(after_s));
        let (first_s, last_s, walls) = self.walls(at_s + low_s, at_s + high_s - 1)?;
        let gap = before_s < after_s;
        let everything = self.expression.wildcard;
        let kind = match self.dst {
            _ if everything && gap => AnomalyKind::Skipped,
            _ if everything => AnomalyKind::Doubled,
            Dst::Skip if gap => AnomalyKind::Skipped,
            Dst::Vixie | Dst::Wall if gap => AnomalyKind::Moved,
            Dst::Wall => AnomalyKind::Doubled,
            Dst::Vixie | Dst::Skip => AnomalyKind::FirstPass,
        };
        let fires_s = match kind {
            AnomalyKind::Moved => Some(at_s),
            AnomalyKind::Skipped => None,
            AnomalyKind::Doubled | AnomalyKind::FirstPass => Some(first_s - before_s),
        };
        let instant = |at_s: i64| DateTime::from_timestamp(at_s, 0);
        Some(Anomaly {
            kind,
            change_at: instant(at_s)?,
            offset_before_s: before_s as i32,
            offset_after_s: after_s as i32,
            first_wall: instant(first_s)?.naive_utc(),
            last_wall: instant(last_s)?.naive_utc(),
            walls,
            fires_at: fires_s.and_then(instant),
            again_at: if gap { None } else { instant(first_s - after_s) },
            merged: kind == AnomalyKind::Moved
                && self.first_wall(at_s + after_s, at_s + after_s).is_some(),
        })
    }

    /// Returns the first and the last matching wall time in `from_s..=to_s`, which is no longer than a few days, and
    /// their number. Takes no step for each of them.
    fn walls(&self, from_s: i64, to_s: i64) -> Option<(i64, i64, u32)> {
        let first_s = self.first_wall(from_s, to_s)?;
        let last_s = self.last_wall(first_s, to_s)?;
        let count = self.expression.sets.count(first_s, last_s);
        Some((first_s, last_s, count as u32))
    }
}

impl Anomaly {
    /// Describes the clock change and its effect on the firing in one sentence.
    pub fn describe(&self, zone: Zone) -> String {
        let wall = self.first_wall.format("%F %T");
        let others = match self.walls {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let instant = |at: Option<DateTime<Utc>>| {
            at.map_or_else(String::new, |at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
        };
        let (fires, again) = (instant(self.fires_at), instant(self.again_at));
        match self.kind {
            AnomalyKind::Moved if self.merged => format!(
                "{wall}{others} is not there on the clocks of {zone}: one with the firing at {fires}"
            ),
            AnomalyKind::Moved => format!(
                "{wall}{others} is not there on the clocks of {zone}: fires at {fires} instead"
            ),
            AnomalyKind::Skipped => {
                format!("{wall}{others} is not there on the clocks of {zone}: does not fire")
            }
            AnomalyKind::Doubled => {
                format!("{wall}{others} comes twice in {zone}: fires at {fires} and at {again}")
            }
            AnomalyKind::FirstPass => format!(
                "{wall}{others} comes twice in {zone}: fires at {fires} alone, not at {again}"
            ),
        }
    }
}
