//! The planner's look at the clock: part of every claim transaction, so that nothing late is claimed
//! before a jump of the database's time is noticed.
//!
//! `planner_clock.seen_at` is the last instant that any planner saw. A transaction that finds the
//! present too far from it writes a row of `holds` and the new instant, both or neither; whoever reads
//! the new instant therefore reads the hold as well. One that read the old instant notices for itself,
//! waits for the row, and finds that it was noticed. So of any number of replicas none claims across a
//! jump without the hold, and there is one hold.
//!
//! While catch-up is held, a claim transaction keeps that hold from ending under it (`FOR SHARE`), so
//! that nothing is set aside after an operator has released what was.
//!
//! A crash before the commit leaves the old instant, and the next planner notices. One after it leaves
//! the hold, and late firings whose cursors stand where they stood: they are set aside later.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::id::JobId;
use sexton_model::plan::Gap;
use sexton_model::time_jump::{TimeJump, detect_jump};
use uuid::Uuid;

use super::ClaimTransaction;
use crate::StoreError;
use crate::client_timeout::WithTimeout;

/// How old the last instant seen becomes before it is written again.
const CLOCK_WRITE_INTERVAL: TimeDelta = TimeDelta::seconds(5);

/// What a look at the clock showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockReading {
    /// The instant of the transaction.
    pub now: DateTime<Utc>,
    /// Whether catch-up is held.
    pub held: bool,
    /// The jump for which it is held from this transaction on.
    pub noticed: Option<ClockJump>,
    /// Whether there is something to commit, also if nothing is claimed.
    pub wrote: bool,
}

/// A jump of the database's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockJump {
    /// How far, and in which direction.
    pub jump: TimeJump,
    /// From here.
    pub last_seen: DateTime<Utc>,
    /// To here.
    pub now: DateTime<Utc>,
}

impl ClaimTransaction<'_> {
    /// Looks at the clock, before anything is claimed. After a jump of more than `limit`, or back,
    /// catch-up is held; `None` notices no jump, and still keeps to a hold that there is. `by` is
    /// `<instance>:<pid>`.
    pub async fn read_clock(
        &mut self,
        limit: Option<Duration>,
        by: &str,
    ) -> Result<ClockReading, StoreError> {
        let row = sqlx::query!(
            r#"-- look_at_clock
            SELECT coalesce($1, now()) AS "now!", (SELECT seen_at FROM sexton.planner_clock) AS seen_at,
                   EXISTS (SELECT FROM sexton.holds WHERE released_at IS NULL) AS "held!""#,
            self.now
        )
        .fetch_one(WithTimeout(&mut *self.tx))
        .await?;
        let mut look = ClockReading { now: row.now, held: row.held, noticed: None, wrote: false };
        match limit.filter(|limit| detect_jump(row.seen_at, row.now, *limit).is_some()) {
            Some(limit) => {
                look.noticed = self.record_jump(limit, by).await?;
                (look.held, look.wrote) = (true, true);
            }
            None if row.seen_at.is_none_or(|seen| row.now - seen >= CLOCK_WRITE_INTERVAL) => {
                look.wrote = self.write_seen_at(row.now).await?;
            }
            None => {}
        }
        look.held = look.held && self.lock_hold().await?;
        Ok(look)
    }

    /// Judges again, alone with the row and by the clock of that moment.
    async fn record_jump(
        &mut self,
        limit: Duration,
        by: &str,
    ) -> Result<Option<ClockJump>, StoreError> {
        let row = sqlx::query!(
            r#"-- lock_planner_clock
            SELECT seen_at, coalesce($1, clock_timestamp()) AS "now!" FROM sexton.planner_clock FOR UPDATE"#,
            self.now
        )
        .fetch_one(WithTimeout(&mut *self.tx))
        .await?;
        let Some(jump) = detect_jump(Some(row.seen_at), row.now, limit) else { return Ok(None) };
        let mut begun = self.hold_catch_up(jump, row.seen_at, row.now, by).await?;
        if !begun && !self.lock_hold().await? {
            // The hold that was there has ended meanwhile, by somebody who knew nothing of this jump.
            begun = self.hold_catch_up(jump, row.seen_at, row.now, by).await?;
        }
        sqlx::query!(
            "-- planner_clock_jumped\nUPDATE sexton.planner_clock SET seen_at = $1",
            row.now
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        let noticed = ClockJump { jump, last_seen: row.seen_at, now: row.now };
        Ok(begun.then_some(noticed))
    }

    /// Begins a hold, if there is none; whether it did. For whoever has the clock's row.
    async fn hold_catch_up(
        &mut self,
        jump: TimeJump,
        last_seen: DateTime<Utc>,
        now: DateTime<Utc>,
        by: &str,
    ) -> Result<bool, StoreError> {
        let begun = sqlx::query!(
            "-- hold_catch_up
            INSERT INTO sexton.holds (reason, last_seen, noticed_at, noticed_by) VALUES ($1, $2, $3, $4)
            ON CONFLICT DO NOTHING",
            jump.as_str(),
            last_seen,
            now,
            by
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        Ok(begun.rows_affected() == 1)
    }

    /// Writes the instant down; whoever finds somebody else writing leaves it to him.
    async fn write_seen_at(&mut self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        sqlx::query!(
            "-- planner_clock_beat
            WITH l AS MATERIALIZED (
                SELECT is_one FROM sexton.planner_clock WHERE seen_at < $1 FOR UPDATE SKIP LOCKED),
            u AS (UPDATE sexton.planner_clock c SET seen_at = $1 FROM l WHERE c.is_one = l.is_one)
            INSERT INTO sexton.planner_clock (seen_at)
            SELECT $1 WHERE NOT EXISTS (SELECT FROM sexton.planner_clock)
            ON CONFLICT DO NOTHING",
            now
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        Ok(true)
    }

    /// Whether there still is a hold; it does not end before this transaction does.
    async fn lock_hold(&mut self) -> Result<bool, StoreError> {
        let hold = sqlx::query_scalar!(
            "-- keep_hold\nSELECT id FROM sexton.holds WHERE released_at IS NULL FOR SHARE"
        )
        .fetch_optional(WithTimeout(&mut *self.tx))
        .await?;
        Ok(hold.is_some())
    }

    /// Sets late firings aside, in the transaction that moves their jobs' cursors past them.
    pub async fn hold_firings(&mut self, held: &[(JobId, Gap)]) -> Result<(), StoreError> {
        if held.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Uuid> = held.iter().map(|(job, _)| job.get()).collect();
        let first: Vec<DateTime<Utc>> = held.iter().map(|(_, gap)| gap.first).collect();
        let last: Vec<DateTime<Utc>> = held.iter().map(|(_, gap)| gap.last).collect();
        let counts: Vec<i32> = held.iter().map(|(_, gap)| gap.count as i32).collect();
        // A cursor that was set back by hand comes to the same firings again.
        sqlx::query!(
            "-- set_firings_aside
            INSERT INTO sexton.held_firings (job_id, first_firing, last_firing, count, held_at)
            SELECT h.*, coalesce($5, now())
            FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::int[]) AS h
            ON CONFLICT (job_id, first_firing) DO UPDATE SET
                last_firing = greatest(held_firings.last_firing, excluded.last_firing),
                count = greatest(held_firings.count, excluded.count)",
            &jobs,
            &first,
            &last,
            &counts,
            self.now
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        Ok(())
    }
}
