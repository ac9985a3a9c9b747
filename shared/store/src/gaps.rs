//! Gaps: firings that no execution stands for, and why.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::plan::{GapReason, Timetable, pass_over};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::bounded::Bounded;
use crate::firing::{GapBehind, GapRow};
use crate::{Now, Store, StoreError};

/// How many stretches of [`sexton_model::plan::MAX_LOOKED_AT`] firings are counted for one gap; a
/// lock is held meanwhile.
const MAX_STRETCHES: usize = 20;

/// A row of `gaps`; the fields bear the columns' names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
pub struct Gap {
    pub id: i64,
    pub job_id: Uuid,
    pub first_firing: DateTime<Utc>,
    pub last_firing: DateTime<Utc>,
    pub count: i32,
    pub reason: String,
    pub recorded_at: DateTime<Utc>,
    pub actor: Option<String>,
    pub why: Option<String>,
    pub into_key: Option<String>,
}

/// A job's gaps, newest first.
pub async fn of_job(store: &Store, job: Uuid, limit: i64) -> Result<Vec<Gap>, StoreError> {
    Ok(sqlx::query_as!(
        Gap,
        "-- gaps_of_job
        SELECT id, job_id, first_firing, last_firing, count, reason, recorded_at, actor, why, into_key
        FROM gaps
        WHERE job_id = $1 ORDER BY first_firing DESC, id DESC LIMIT $2",
        job,
        limit
    )
    .fetch_all(store.bounded())
    .await?)
}

/// What passed between a cursor and `now` without being executed.
pub(crate) struct Passed {
    /// The run; `None`: nothing was due.
    pub(crate) gap: Option<PassedRun>,
    /// The first firing after `now`.
    pub(crate) next_fire_at: Option<DateTime<Utc>>,
}

/// A run of firings, counted up to a limit.
pub(crate) struct PassedRun {
    pub(crate) first: DateTime<Utc>,
    pub(crate) last: DateTime<Utc>,
    pub(crate) count: u32,
    /// Whether `count` is all; otherwise `last` is the instant up to which it may be more.
    pub(crate) complete: bool,
}

/// Counts the firings from `cursor` to `now`.
pub(crate) fn passed(
    timetable: &Timetable,
    cursor: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Passed {
    let mut run: Option<PassedRun> = None;
    let mut next = cursor;
    for _ in 0..MAX_STRETCHES {
        let Some(from) = next.filter(|next| *next <= now) else { break };
        let plan = pass_over(timetable, from, now, GapReason::Paused);
        for gap in plan.gaps {
            let before = run.take();
            run = Some(PassedRun {
                first: before.as_ref().map_or(gap.first, |run| run.first),
                last: gap.last,
                count: before.map_or(0, |run| run.count).saturating_add(gap.count),
                complete: true,
            });
        }
        next = plan.next_fire_at;
    }
    if next.is_some_and(|next| next <= now) {
        if let Some(run) = &mut run {
            (run.last, run.complete) = (now, false);
        }
        next = timetable.next_after(now);
    }
    Passed { gap: run, next_fire_at: next }
}

impl PassedRun {
    /// As a row. Where the count is not complete, the reason says so.
    pub(crate) fn row(&self, job: Uuid, reason: &str, behind: GapBehind) -> GapRow {
        let reason = if self.complete { reason.to_owned() } else { format!("{reason}, at least") };
        GapRow {
            job_id: sexton_model::id::JobId::new(job),
            first: self.first,
            last: self.last,
            count: self.count,
            reason,
            behind,
        }
    }
}

/// Writes gaps in the caller's transaction, recorded at `now`.
pub(crate) async fn record(
    connection: &mut PgConnection,
    gaps: &[GapRow],
    now: Now,
) -> Result<(), StoreError> {
    if gaps.is_empty() {
        return Ok(());
    }
    let jobs: Vec<Uuid> = gaps.iter().map(|gap| gap.job_id.get()).collect();
    let first: Vec<DateTime<Utc>> = gaps.iter().map(|gap| gap.first).collect();
    let last: Vec<DateTime<Utc>> = gaps.iter().map(|gap| gap.last).collect();
    let of = |pick: fn(&GapBehind) -> &Option<String>| {
        gaps.iter().map(|gap| pick(&gap.behind).clone()).collect::<Vec<Option<String>>>()
    };
    let counts: Vec<i32> = gaps.iter().map(|gap| gap.count as i32).collect();
    let reasons: Vec<String> = gaps.iter().map(|gap| gap.reason.clone()).collect();
    sqlx::query!(
        "-- record_gaps
        INSERT INTO gaps (job_id, first_firing, last_firing, count, reason, actor, why, into_key,
                          recorded_at)
        SELECT g.*, coalesce($9, now())
        FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::int[], $5::text[], $6::text[],
                    $7::text[], $8::text[]) AS g",
        &jobs,
        &first,
        &last,
        &counts,
        &reasons,
        &of(|behind| &behind.actor) as &[Option<String>],
        &of(|behind| &behind.why) as &[Option<String>],
        &of(|behind| &behind.into_key) as &[Option<String>],
        now
    )
    .execute(Bounded(connection))
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::job::{JobSpec, Schedule};

    fn every_second() -> Timetable {
        let period = std::time::Duration::from_secs(1);
        Timetable::of(&JobSpec::new("a.b", "t", Schedule::Every { period })).unwrap()
    }

    #[test]
    fn what_passed_is_counted_and_the_cursor_is_strictly_after_now() {
        let now = DateTime::from_timestamp(1_000, 0).unwrap();
        let cursor = DateTime::from_timestamp(990, 0);
        let passed = passed(&every_second(), cursor, now);
        let run = passed.gap.unwrap();
        assert_eq!((run.count, run.last, run.complete), (11, now, true));
        assert_eq!(passed.next_fire_at, DateTime::from_timestamp(1_001, 0));
    }

    #[test]
    fn a_long_pause_is_counted_up_to_the_limit_and_says_so() {
        let now = DateTime::from_timestamp(10_000_000, 0).unwrap();
        let passed = passed(&every_second(), DateTime::from_timestamp(1, 0), now);
        let run = passed.gap.unwrap();
        assert_eq!((run.count, run.last), (200_000, now));
        assert_eq!(run.row(Uuid::nil(), "paused", GapBehind::default()).reason, "paused, at least");
        assert_eq!(passed.next_fire_at, DateTime::from_timestamp(10_000_001, 0));
    }

    #[test]
    fn nothing_due_is_no_gap() {
        let now = DateTime::from_timestamp(1_000, 500).unwrap();
        let cursor = DateTime::from_timestamp(1_001, 0);
        let passed = passed(&every_second(), cursor, now);
        assert!(passed.gap.is_none());
        assert_eq!(passed.next_fire_at, cursor);
    }
}
