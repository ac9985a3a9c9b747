//! Recomputes cursors that come from older time zone data.
//!
//! A cursor is the first firing after some instant (`planned_until`), by the data of the program that computed it
//! (`tz_version`). A program with newer data computes it again from there: a cursor that then lies in the past is
//! late, and is judged like any late firing; a cursor that moved is reported. A program leaves rows from newer data
//! alone, so that two versions side by side do not move a cursor to and fro.

use chrono::{DateTime, Utc};
use sexton_model::cron::Dst;
use sexton_model::id::JobId;
use sexton_model::job::{ConstraintColumns, Schedule, ScheduleConstraints};
use sexton_model::plan::{Cursor, Timetable, first_firing};
use sexton_model::zone::{Zone, tz_data_version};
use uuid::Uuid;

use super::day_rule;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::notifications::Notification;
use crate::operator::notify;
use crate::{Store, StoreError};

/// A cursor that newer data moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MovedCursor {
    /// The job.
    pub name: String,
    /// Its zone.
    pub timezone: String,
    /// The old cursor.
    pub from: DateTime<Utc>,
    /// The new cursor; `None`: the job never fires again.
    pub to: Option<DateTime<Utc>>,
    /// The version of the data that computed the old cursor; `None`: unknown.
    pub by: Option<String>,
}

/// The result of one batch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recomputed {
    /// Number of jobs examined.
    pub jobs: usize,
    /// The cursors that moved.
    pub moved: Vec<MovedCursor>,
    /// Where the next batch begins; `None`: this was the last one.
    pub next: Option<RecomputePosition>,
}

/// The last job that a batch examined, in the order of the version of the data that computed the cursor, then of the
/// id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecomputePosition {
    version: String,
    id: JobId,
}

/// Recomputes the cursors of up to `limit` jobs that older data computed, from the job after `after` on. Skips jobs
/// that another transaction has locked: call again later. One transaction; a crash leaves the cursors as they were.
/// Reads only these jobs' rows, however large the table is.
pub async fn recompute(
    store: &Store,
    after: Option<&RecomputePosition>,
    limit: i64,
) -> Result<Recomputed, StoreError> {
    let mut tx = store.begin().await?;
    let rows = sqlx::query_as!(
        Row,
        r#"-- outdated_cursors
        SELECT id, name, schedule_kind, schedule_expression, timezone, dst, days, start_at, end_at, exclude,
               jitter_ms, next_nominal_at, next_fire_at AS "next_fire_at!", planned_until AS "planned_until!", tz_version
        FROM sexton.jobs
        WHERE schedule_kind IN ('cron', 'once') AND timezone <> 'UTC' AND next_fire_at IS NOT NULL
          AND planned_until IS NOT NULL
          AND coalesce(tz_version, '') COLLATE "C" < $1 COLLATE "C"
          AND (coalesce(tz_version, '') COLLATE "C", id) > ($2 COLLATE "C", $3)
        ORDER BY coalesce(tz_version, '') COLLATE "C", id LIMIT $4
        FOR NO KEY UPDATE SKIP LOCKED"#,
        tz_data_version(),
        after.map_or("", |after| after.version.as_str()),
        after.map_or(Uuid::nil(), |after| after.id.get()),
        limit
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let mut done = Recomputed {
        jobs: rows.len(),
        moved: Vec::new(),
        next: rows.last().filter(|_| rows.len() as i64 == limit).map(Row::looked_at),
    };
    // The planner reports an unreadable schedule when the job is due.
    let read: Vec<(Row, Timetable)> = rows
        .into_iter()
        .filter_map(|row| row.timetable().map(|timetable| (row, timetable)))
        .collect();
    let ids: Vec<Uuid> = read.iter().map(|(row, _)| row.id).collect();
    let next: Vec<Option<Cursor>> = read
        .iter()
        .map(|(row, timetable)| {
            let nominal = first_firing(timetable, row.planned_until)?;
            Some(Cursor::on(timetable, nominal))
        })
        .collect();
    let due: Vec<Option<DateTime<Utc>>> = next.iter().map(|next| next.map(|at| at.due)).collect();
    let nominal: Vec<Option<DateTime<Utc>>> =
        next.iter().map(|next| next.and_then(Cursor::distinct_nominal)).collect();
    sqlx::query!(
        "-- recompute_cursors
        WITH moved AS (
            UPDATE sexton.jobs SET next_fire_at = c.next, next_nominal_at = c.nominal, tz_version = $3
            FROM unnest($1::uuid[], $2::timestamptz[], $4::timestamptz[]) AS c (job_id, next, nominal)
            WHERE jobs.id = c.job_id RETURNING jobs.id)
        -- Limits count from the nominal time, which may be earlier now.
        INSERT INTO sexton.monitor_wakeups (job_id) SELECT id FROM moved",
        &ids,
        &due as &[Option<DateTime<Utc>>],
        tz_data_version(),
        &nominal as &[Option<DateTime<Utc>>]
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let to = next.into_iter().map(|next| next.map(|next| next.nominal));
    let moved = read.into_iter().zip(to).filter(|((row, ..), to)| row.nominal() != *to);
    done.moved = moved.map(|((row, ..), to)| row.moved_to(to)).collect();
    if !done.moved.is_empty() {
        notify(&mut tx, Notification::Jobs).await?;
    }
    commit(tx).await?;
    Ok(done)
}

struct Row {
    id: Uuid,
    name: String,
    schedule_kind: String,
    schedule_expression: Option<String>,
    timezone: String,
    dst: String,
    days: Option<String>,
    start_at: Option<String>,
    end_at: Option<String>,
    exclude: Vec<String>,
    jitter_ms: Option<i64>,
    next_nominal_at: Option<DateTime<Utc>>,
    next_fire_at: DateTime<Utc>,
    planned_until: DateTime<Utc>,
    tz_version: Option<String>,
}

impl Row {
    fn looked_at(&self) -> RecomputePosition {
        RecomputePosition {
            version: self.tz_version.clone().unwrap_or_default(),
            id: JobId::new(self.id),
        }
    }

    fn schedule(&self) -> Option<Schedule> {
        let expression = self.schedule_expression.as_deref();
        Schedule::from_columns(&self.schedule_kind, expression).ok()
    }

    fn constraints(&self) -> Option<ScheduleConstraints> {
        ScheduleConstraints::from_columns(ConstraintColumns {
            start: self.start_at.as_deref(),
            end: self.end_at.as_deref(),
            exclude: &self.exclude,
            jitter_ms: self.jitter_ms,
            max_runs: None,
        })
        .ok()
    }

    fn timetable(&self) -> Option<Timetable> {
        let (zone, dst) = (Zone::parse(&self.timezone).ok()?, Dst::parse(&self.dst)?);
        let days = day_rule(self.days.as_deref()).ok()?;
        let timetable = Timetable::new(&self.name, &self.schedule()?, zone, dst, days).ok()?;
        Some(
            timetable
                .with_constraints(&self.constraints()?, &self.name)
                .since(Some(self.planned_until)),
        )
    }

    /// Returns the cursor's nominal time.
    fn nominal(&self) -> Option<DateTime<Utc>> {
        let (schedule, constraints) = (self.schedule()?, self.constraints()?);
        let cursor =
            Cursor::from_columns(self.next_fire_at, self.next_nominal_at, &schedule, &constraints);
        Some(cursor.nominal)
    }

    fn moved_to(self, to: Option<DateTime<Utc>>) -> MovedCursor {
        let from = self.nominal().unwrap_or(self.next_fire_at);
        MovedCursor { name: self.name, timezone: self.timezone, from, to, by: self.tz_version }
    }
}
