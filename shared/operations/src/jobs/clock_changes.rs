//! Predicts the effects of clock changes on jobs' firings.

use std::time::Instant;

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::Serialize;
use sexton_model::cron::{Anomaly, Dialect, Expression};
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::lint::lint_horizon;
use sexton_model::zone::Zone;
use sexton_store::{Store, status};

use super::scheduled::{ScheduledJob, load_jobs_by_name};
use crate::error::OperationError;

/// The effect of one clock change on firings, as a document. Wall times have no offset: the change is about them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClockChangeEffect {
    /// `moved`, `skipped`, `doubled` or `first_pass`.
    pub kind: &'static str,
    /// The zone whose clocks change.
    pub tz: String,
    /// The first instant after the change.
    pub change_at: DateTime<Utc>,
    /// The offset from UTC before it, in seconds.
    pub offset_before_s: i32,
    /// The offset from UTC after it, in seconds.
    pub offset_after_s: i32,
    /// The first wall time concerned.
    pub first_wall: String,
    /// The last one.
    pub last_wall: String,
    /// Number of wall times concerned.
    pub walls: u32,
    /// When the first of them fires (of moved ones, all of them); `None` if none does.
    pub fires_at: Option<DateTime<Utc>>,
    /// When the clocks show the first of them again; `None` where they skip it.
    pub again_at: Option<DateTime<Utc>>,
    /// Whether the instant after the gap is a firing anyway, so that the two are one.
    pub merged: bool,
}

impl ClockChangeEffect {
    /// Makes the document.
    pub fn new(anomaly: &Anomaly, zone: Zone) -> Self {
        let wall = |wall: NaiveDateTime| wall.format("%FT%T").to_string();
        Self {
            kind: anomaly.kind.as_str(),
            tz: zone.name().to_owned(),
            change_at: anomaly.change_at,
            offset_before_s: anomaly.offset_before_s,
            offset_after_s: anomaly.offset_after_s,
            first_wall: wall(anomaly.first_wall),
            last_wall: wall(anomaly.last_wall),
            walls: anomaly.walls,
            fires_at: anomaly.fires_at,
            again_at: anomaly.again_at,
            merged: anomaly.merged,
        }
    }
}

/// The effects of the clock changes of two years on a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClockChangeEffects {
    /// When the two years begin.
    pub from: DateTime<Utc>,
    /// When they end.
    pub until: DateTime<Utc>,
    /// The effects, in the order of the changes.
    pub anomalies: Vec<ClockChangeEffect>,
}

/// Predicts the effects of the clock changes of the two years from `from` on, or from now on, on a job.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`], and those of the database.
pub async fn of_job(
    store: &Store,
    name: String,
    from: Option<DateTime<Utc>>,
) -> Result<ClockChangeEffects, OperationError> {
    let jobs = load_jobs_by_name(store, &[name]).await?;
    let from = match from {
        Some(from) => from,
        None => status::clock(store).await?,
    };
    let until = lint_horizon(from);
    let effects = list(&jobs, from, until);
    let document =
        |(job, one): &(&ScheduledJob, Anomaly)| ClockChangeEffect::new(one, job.spec.timezone);
    Ok(ClockChangeEffects { from, until, anomalies: effects.iter().map(document).collect() })
}

/// Returns the anomalies of all these jobs between two instants, in the order of the changes.
pub fn list(
    jobs: &[ScheduledJob],
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<(&ScheduledJob, Anomaly)> {
    list_until(None, jobs, from, until).effects
}

/// The effects of clock changes on jobs.
#[derive(Debug)]
pub struct PredictedEffects<'a> {
    /// The effects, in the order of the changes.
    pub effects: Vec<(&'a ScheduledJob, Anomaly)>,
    /// Number of jobs that were examined: the first ones.
    pub job_count: usize,
}

/// As [`list`], but examines no other job from `deadline` on, if there is one.
pub fn list_until(
    deadline: Option<Instant>,
    jobs: &[ScheduledJob],
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> PredictedEffects<'_> {
    let has_time = || deadline.is_none_or(|deadline| Instant::now() < deadline);
    let examined = jobs.iter().take_while(|_| has_time());
    let each: Vec<_> = examined.map(|job| anomalies(job, from, until)).collect();
    let job_count = each.len();
    let mut effects: Vec<(&ScheduledJob, Anomaly)> = each.into_iter().flatten().collect();
    effects.sort_by(|(job, a), (other, b)| {
        (a.change_at, &job.row.name).cmp(&(b.change_at, &other.row.name))
    });
    PredictedEffects { effects, job_count }
}

fn anomalies(
    job: &ScheduledJob,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> impl Iterator<Item = (&ScheduledJob, Anomaly)> {
    let read = match &job.spec.schedule {
        Schedule::Cron { expression } => {
            let JobSpec { name, days, .. } = &job.spec;
            Expression::parse_with_days(expression, Dialect::Any, name, *days).ok()
        }
        _ => None,
    };
    let (zone, dst) = (job.spec.timezone, job.spec.dst);
    let all = read.map(|expression| expression.anomalies(from, until, zone, dst));
    all.unwrap_or_default().into_iter().map(move |anomaly| (job, anomaly))
}
