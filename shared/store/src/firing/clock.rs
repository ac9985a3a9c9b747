//! The planner's check of the clock: part of every claim transaction, so that a jump of the database's time is
//! noticed before late firings are claimed.
//!
//! `planner_clock.seen_at` is the last instant that any planner saw. A transaction that finds the present too far
//! from it writes a row of `holds` and the new instant, both or neither; a transaction that reads the new instant
//! therefore also reads the hold. One that read the old instant also detects the jump, waits for the row, and finds
//! the hold. So of any number of replicas none claims across a jump without the hold, and there is one hold.
//!
//! While catch-up is held, a claim transaction keeps that hold from ending (`FOR SHARE`), so that no firing is set
//! aside after an operator has released the others.
//!
//! A crash before the commit leaves the old instant, and the next planner detects the jump. One after it leaves the
//! hold, and late firings whose cursors have not moved: they are set aside later.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::id::JobId;
use sexton_model::plan::Gap;
use sexton_model::time_jump::{TimeJump, detect_jump};
use uuid::Uuid;

use super::{ClaimTransaction, claim_lead};
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// How old the last instant seen becomes before it is written again.
const CLOCK_WRITE_INTERVAL: TimeDelta = TimeDelta::seconds(5);

/// The result of the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockReading {
    /// The instant of the transaction.
    pub now: DateTime<Utc>,
    /// Whether catch-up is held.
    pub held: bool,
    /// The jump for which it is held from this transaction on.
    pub noticed: Option<ClockJump>,
    /// Whether the transaction must be committed even if nothing is claimed.
    pub wrote: bool,
}

/// A jump of the database's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockJump {
    /// Its size and direction.
    pub jump: TimeJump,
    /// The time before it.
    pub last_seen: DateTime<Utc>,
    /// The time after it.
    pub now: DateTime<Utc>,
}

impl ClaimTransaction<'_> {
    /// Checks the clock, before any claim. After a jump of more than `limit`, or back, catch-up is held; with `None`
    /// no jump is detected, but an existing hold still counts. `by` is `<instance>:<pid>`.
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
        let mut reading =
            ClockReading { now: row.now, held: row.held, noticed: None, wrote: false };
        match limit.filter(|limit| detect_jump(row.seen_at, row.now, *limit).is_some()) {
            Some(limit) => {
                reading.noticed = self.record_jump(limit, by).await?;
                (reading.held, reading.wrote) = (true, true);
            }
            None if row.seen_at.is_none_or(|seen| row.now - seen >= CLOCK_WRITE_INTERVAL) => {
                reading.wrote = self.write_seen_at(row.now).await?;
            }
            None => {}
        }
        reading.held = reading.held && self.lock_hold().await?;
        Ok(reading)
    }

    /// Checks again with the clock's row locked, by the clock of that moment.
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
        let mut is_new = self.hold_catch_up(jump, row.seen_at, row.now, by).await?;
        if !is_new && !self.lock_hold().await? {
            // The existing hold has ended meanwhile, released by an operator who did not know of this jump.
            is_new = self.hold_catch_up(jump, row.seen_at, row.now, by).await?;
        }
        sqlx::query!(
            "-- planner_clock_jumped\nUPDATE sexton.planner_clock SET seen_at = $1",
            row.now
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        let noticed = ClockJump { jump, last_seen: row.seen_at, now: row.now };
        Ok(is_new.then_some(noticed))
    }

    /// Begins a hold unless one exists; returns whether it did. The caller has locked the clock's row.
    async fn hold_catch_up(
        &mut self,
        jump: TimeJump,
        last_seen: DateTime<Utc>,
        now: DateTime<Utc>,
        by: &str,
    ) -> Result<bool, StoreError> {
        let inserted = sqlx::query!(
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
        Ok(inserted.rows_affected() == 1)
    }

    /// Writes the instant; skips it if another planner is writing.
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

    /// Returns whether a hold exists; it then lasts at least as long as this transaction.
    async fn lock_hold(&mut self) -> Result<bool, StoreError> {
        let hold = sqlx::query_scalar!(
            "-- keep_hold\nSELECT id FROM sexton.holds WHERE released_at IS NULL FOR SHARE"
        )
        .fetch_optional(WithTimeout(&mut *self.tx))
        .await?;
        Ok(hold.is_some())
    }

    /// Sets late firings aside, in the transaction that moves their jobs' cursors past them; at the instant by which
    /// they were planned.
    pub async fn hold_firings(&mut self, held: &[(JobId, Gap)]) -> Result<(), StoreError> {
        if held.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Uuid> = held.iter().map(|(job, _)| job.get()).collect();
        let first: Vec<DateTime<Utc>> = held.iter().map(|(_, gap)| gap.first).collect();
        let last: Vec<DateTime<Utc>> = held.iter().map(|(_, gap)| gap.last).collect();
        let counts: Vec<i32> = held.iter().map(|(_, gap)| gap.count as i32).collect();
        // A cursor that was set back by hand reaches the same firings again.
        sqlx::query!(
            "-- set_firings_aside
            INSERT INTO sexton.held_firings (job_id, first_firing, last_firing, count, held_at)
            SELECT h.*, coalesce($5, now()) + $6 * interval '1 millisecond'
            FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::int[]) AS h
            ON CONFLICT (job_id, first_firing) DO UPDATE SET
                last_firing = greatest(held_firings.last_firing, excluded.last_firing),
                count = greatest(held_firings.count, excluded.count)",
            &jobs,
            &first,
            &last,
            &counts,
            self.now,
            claim_lead(self.now)
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        Ok(())
    }
}
