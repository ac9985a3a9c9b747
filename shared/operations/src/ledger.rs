//! The ledger: the disposition of each firing of a job, as an answer for people and programs.
//!
//! [`FiringRequest::read`] parses the request. [`explain`] reads a part of a job's ledger in one snapshot, decides
//! with [`sexton_model::explain`] and renders sentences. It only reads; for a single firing it adds the timeline of
//! its execution.

pub mod execution;
mod sentences;
pub mod timeline;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::explain::{
    Disposition, GapRecord, NotAFiring, classify_instant, nominal_disposition,
};
use sexton_model::zone::Zone;
use sexton_store::jobs::Job;
use sexton_store::ledger::{FiringExecution, LedgerPage, LedgerQuery, read_page, zone_of};
use sexton_store::{Store, StoreError, attempts, executions, operator};
use uuid::Uuid;

use crate::error::{InvalidRequest, OperationError};
use crate::instants::{self, TimeRangeRequest, last_before};
use crate::job_names;
use crate::paging::{Cursor, PagedList};
pub use sentences::describe_gap;
use timeline::{Event, timeline};

/// Maximum number of attempts in a timeline.
pub(crate) const MAX_ATTEMPTS: i64 = 200;

/// The firings of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FiringSelector {
    /// The one at this instant.
    At(DateTime<Utc>),
    /// Those in a range, the oldest first.
    Range {
        /// The first instant.
        since: DateTime<Utc>,
        /// The instant behind the last one.
        until: DateTime<Utc>,
        /// Maximum number of firings.
        limit: usize,
    },
}

impl FiringSelector {
    const fn at(self) -> Option<DateTime<Utc>> {
        match self {
            Self::At(at) => Some(at),
            Self::Range { .. } => None,
        }
    }

    const fn range(self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        match self {
            Self::At(_) => None,
            Self::Range { since, until, .. } => Some((since, until)),
        }
    }
}

/// A part of a job's ledger.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ExplainedFirings))]
pub struct Answer {
    /// The job's name.
    pub job_name: String,
    /// Its id.
    pub job_id: Uuid,
    /// Its time zone.
    pub timezone: String,
    /// When it was deleted.
    pub deleted_at: Option<DateTime<Utc>>,
    /// The instant of the request; `None`: it was a range.
    pub at: Option<DateTime<Utc>>,
    /// The first instant of the range.
    pub since: Option<DateTime<Utc>>,
    /// The instant behind the last one of the range.
    pub until: Option<DateTime<Utc>>,
    /// When it was read, by the database's clock.
    pub now: DateTime<Utc>,
    /// The firings, oldest first.
    pub firings: Vec<ExplainedFiring>,
    /// For a single instant that is no firing: what it is.
    pub no_firing: Option<NotFiring>,
    /// The cursor of the next page; `None`: no more firings follow in the range.
    pub next_cursor: Option<Cursor>,
}

/// A firing and its disposition.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedFiring {
    /// Its nominal time.
    pub scheduled_for: DateTime<Utc>,
    /// Its execution key.
    pub execution_key: String,
    /// The revision of the job that contains it; `None`: it was claimed, but no known revision contains it by the
    /// current time zone data.
    pub revision: Option<i32>,
    /// Its disposition, in a word.
    pub disposition: String,
    /// Its disposition, in a sentence.
    pub why: String,
    /// Who paused, changed or deleted the job, if that is why it did not run.
    pub actor: Option<String>,
    /// The reason that this person gave.
    pub reason: Option<String>,
    /// The key of the firing that ran for it, if it was coalesced.
    pub into_key: Option<String>,
    /// When it is due, if it lies ahead.
    pub due_at: Option<DateTime<Utc>>,
    /// Its execution.
    pub execution: Option<ExecutionSummary>,
    /// The execution's events, oldest first; only for a single firing.
    pub timeline: Option<Vec<Event>>,
}

/// A summary of an execution; the fields are named after the columns.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionSummary {
    pub id: Uuid,
    pub state: String,
    pub attempt: i32,
    pub claimed_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub outcome: Option<String>,
    pub error_class: Option<String>,
    pub error_message: Option<String>,
    /// The operator who backfilled it.
    pub backfilled_by: Option<String>,
    /// The reason given.
    pub backfill_reason: Option<String>,
}

/// An instant that is no firing.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotFiring {
    /// What it is, in a word.
    pub disposition: &'static str,
    /// What it is, in a sentence.
    pub why: String,
    /// The previous firing.
    pub before: Option<DateTime<Utc>>,
    /// The next firing.
    pub after: Option<DateTime<Utc>>,
}

/// Explains firings of `job`. `now` is the instant of the answer; `None`: the database's.
///
/// # Errors
///
/// Those of the database, and [`crate::error::NotFound::Job`] if the job's row was removed meanwhile.
pub async fn explain(
    store: &Store,
    job: &Job,
    selector: FiringSelector,
    now: Option<DateTime<Utc>>,
) -> Result<Answer, OperationError> {
    let (from, to, most) = match selector {
        FiringSelector::At(at) => (at, at, 1),
        FiringSelector::Range { since, until, limit } => (since, last_before(until), limit),
    };
    let query = LedgerQuery { job: job.id, from, to, max_firings: most };
    let Some(page) = read_page(store, query, now).await? else {
        return Err(job_names::missing(store, &job.name).await);
    };
    let mut firings: Vec<ExplainedFiring> = page
        .stretch
        .firings
        .iter()
        .map(|firing| {
            let execution = page.executions.get(&firing.key);
            let place = (firing.at, firing.key.clone(), firing.revision);
            explain_firing(&page, place, execution)
        })
        .collect();
    let not_firing = match selector {
        FiringSelector::At(at) if firings.is_empty() => Some(explain_no_firing(&page, at)),
        _ => None,
    };
    if let (FiringSelector::At(_), [firing]) = (selector, firings.as_mut_slice())
        && let Some(execution) = &firing.execution
    {
        firing.timeline = read_timeline(store, execution.id).await?;
    }
    Ok(Answer {
        job_name: job.name.clone(),
        job_id: job.id,
        timezone: job.timezone.clone(),
        deleted_at: job.deleted_at,
        at: selector.at(),
        since: selector.range().map(|range| range.0),
        until: selector.range().map(|range| range.1),
        now: page.now,
        firings,
        no_firing: not_firing,
        next_cursor: page.stretch.next.map(|next| Cursor::behind(PagedList::Firings, &next)),
    })
}

async fn read_timeline(store: &Store, id: Uuid) -> Result<Option<Vec<Event>>, StoreError> {
    let Some(execution) = executions::find(store, id).await? else { return Ok(None) };
    let attempts = attempts::list_by_execution(store, id, MAX_ATTEMPTS).await?;
    let actions = operator::list_by_execution(store, id).await?;
    Ok(Some(timeline(&execution, &attempts, &actions)))
}

fn explain_firing(
    page: &LedgerPage,
    (at, key, revision): (DateTime<Utc>, String, Option<i32>),
    execution: Option<&FiringExecution>,
) -> ExplainedFiring {
    let recorded = execution.map(|execution| &execution.recorded);
    let found = nominal_disposition(at, &page.history, recorded, &page.gaps, (&page.job, page.now));
    // The gap of an excluded day may lie within a longer one.
    let is_such = |gap: &&GapRecord| (gap.reason == "excluded") == (found.word() == "excluded");
    let mut gaps = page.gaps.iter().filter(is_such);
    let gap = gaps.find(|gap| (gap.first..=gap.last).contains(&at));
    let (mut actor, mut reason) = match (&found, gap) {
        (Disposition::Paused(pause), _) => (pause.actor.clone(), pause.why.clone()),
        (Disposition::NotRun(_), Some(gap)) => (gap.actor.clone(), gap.why.clone()),
        _ => (None, None),
    };
    if let Disposition::Skipped(why) = &found {
        reason = Some(why.clone());
    }
    if let (Disposition::NotYet, Some(pause)) = (&found, &page.job.paused) {
        (actor, reason) = (pause.actor.clone(), pause.why.clone());
    }
    ExplainedFiring {
        scheduled_for: at,
        execution_key: key,
        revision,
        why: sentences::describe_firing(
            &found,
            at,
            execution,
            actor.as_deref(),
            reason.as_deref(),
            page,
        ),
        disposition: found.word().to_owned(),
        actor,
        reason,
        into_key: match &found {
            Disposition::Coalesced(into) => into.clone(),
            _ => None,
        },
        due_at: match &found {
            Disposition::NotYet | Disposition::Due => {
                page.job.due_at.filter(|_| page.job.next_fire_at == Some(at)).or(Some(at))
            }
            Disposition::Running(_) => execution.and_then(|execution| execution.next_attempt_at),
            _ => None,
        },
        execution: execution.map(ExecutionSummary::new),
        timeline: None,
    }
}

fn explain_no_firing(page: &LedgerPage, at: DateTime<Utc>) -> NotFiring {
    let what: NotAFiring = classify_instant(at, &page.history);
    let (before, after) = (page.history.before(at), page.history.after(at));
    NotFiring {
        disposition: what.word(),
        why: sentences::describe_no_firing(what, page),
        before,
        after,
    }
}

impl ExecutionSummary {
    fn new(execution: &FiringExecution) -> Self {
        let backfill = execution.backfill.as_ref();
        Self {
            id: execution.id,
            state: execution.recorded.state.as_str().to_owned(),
            attempt: execution.attempt,
            claimed_at: execution.claimed_at,
            started_at: execution.started_at,
            finished_at: execution.finished_at,
            next_attempt_at: execution.next_attempt_at,
            outcome: execution.outcome.clone(),
            error_class: execution.error_class.clone(),
            error_message: execution.error_message.clone(),
            backfilled_by: backfill.and_then(|backfill| backfill.actor.clone()),
            backfill_reason: backfill.and_then(|backfill| backfill.why.clone()),
        }
    }
}

/// A request for firings, in texts as [`crate::instants`] parses them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FiringRequest<'a> {
    /// The firing at this instant.
    pub at: Option<&'a str>,
    /// Or those in this range; without an end until now.
    pub range: TimeRangeRequest<'a>,
    /// Only those behind this cursor.
    pub cursor: Option<&'a str>,
    /// The zone of times without an offset; `None`: the job's.
    pub zone: Option<Zone>,
    /// Maximum number of firings in a range.
    pub limit: usize,
}

impl FiringRequest<'_> {
    /// Parses the texts; `now` is the database's clock.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`].
    pub fn read(self, job: &Job, now: DateTime<Utc>) -> Result<FiringSelector, InvalidRequest> {
        let zone = self.zone.unwrap_or_else(|| zone_of(job));
        if let Some(at) = self.at {
            let at = instants::parse_start(at, zone, now)
                .map_err(|error| InvalidRequest::field("at", error.to_string()))?;
            return Ok(FiringSelector::At(at));
        }
        if self.range.since.is_none() {
            return Err(InvalidRequest::NoInstant);
        }
        let (since, until) = self.range.read_until_now(zone, now)?;
        // The cursor is the instant of the next firing.
        let next: Option<DateTime<Utc>> = Cursor::read(PagedList::Firings, self.cursor)?;
        let since = next.map_or(since, |next| since.max(next));
        if since >= until {
            return Err(InvalidRequest::EmptyRange);
        }
        Ok(FiringSelector::Range { since, until, limit: self.limit })
    }
}
