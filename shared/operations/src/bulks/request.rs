//! Previews and creates bulks.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::bulk::BulkKind;
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::failures::FailureFilter;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::rate::Rate;
use sexton_store::bulk::{self, Bulk, BulkSelector, NewBulk, Preview};
use sexton_store::{Store, status};
use uuid::Uuid;

use super::watch::find;
use crate::actor::Actor;
use crate::approvals::gate::{self, ApprovalDemand, Clearance, Gate, Outcome};
use crate::approvals::proposal::{BulkProposal, Proposal};
use crate::error::{Conflict, InvalidRequest, OperationError};
use crate::scope;
use crate::selection::{Selection, current_attempts};

/// Who checks whether an effect has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verifier<'a> {
    /// The verify tasks of the jobs that have one.
    Tasks,
    /// No check, although jobs may have a verify task.
    Nobody,
    /// This command, on the operator's machine; see [`super::verify`].
    Command(&'a str),
}

impl Verifier<'_> {
    /// Returns the store's value, where `any` job has a verify task: a bulk may select more than its preview has
    /// read.
    pub(super) const fn to_store(self, any: bool) -> Option<&'static str> {
        match self {
            Self::Command(_) => Some(bulk::VERIFY_BY_COMMAND),
            Self::Tasks if any => Some(bulk::VERIFY_BY_TASK),
            Self::Nobody if any => Some(bulk::VERIFY_BY_NOBODY),
            Self::Tasks | Self::Nobody => None,
        }
    }
}

/// A bulk's action and options.
#[derive(Clone, Copy, Debug)]
pub struct BulkAction<'a> {
    /// The kind.
    pub kind: BulkKind,
    /// Size of the canary: the other executions follow only when all of these have succeeded.
    pub canary: Option<u32>,
    /// The pool for the executions; `None`: each its own.
    pub pool: Option<&'a str>,
    /// The verifier that checks each first.
    pub verify: Verifier<'a>,
    /// How many per time; `None`: as fast as the tickets are published.
    pub rate: Option<Rate>,
    /// The reason for the audit.
    pub reason: Option<&'a str>,
}

impl<'a> BulkAction<'a> {
    /// Makes a request without options.
    pub const fn new(kind: BulkKind, rate: Option<Rate>, reason: Option<&'a str>) -> Self {
        Self { kind, canary: None, pool: None, verify: Verifier::Nobody, rate, reason }
    }
}

/// The effect of a bulk, as of its preview.
#[derive(Debug)]
pub struct BulkPreview {
    /// Number of executions by job and pool.
    pub counts: Preview,
    targets: Targets,
}

#[derive(Debug)]
enum Targets {
    Filter(Value),
    /// Each at the attempt number of the preview, so that a bulk never takes a later failure.
    Ids(Vec<(ExecutionId, AttemptNumber)>),
}

/// Previews a bulk of this selection; changes nothing. A filter selects executions that had failed by `until`, which is
/// the instant of an earlier preview, or now if absent.
///
/// # Errors
///
/// [`InvalidRequest`] for an instant that lies ahead, and those of the database.
pub async fn preview(
    store: &Store,
    selection: &Selection<FailureFilter>,
    until: Option<DateTime<Utc>>,
) -> Result<BulkPreview, OperationError> {
    check_passed(store, until).await?;
    match selection {
        Selection::Filter(filter) => {
            let filter = &scope::narrow(store, &**filter)?;
            let counts = bulk::preview(store, filter, until).await?;
            Ok(BulkPreview { counts, targets: Targets::Filter(json!(filter)) })
        }
        Selection::Ids(ids) => {
            let counts = bulk::preview_ids(store, &raw(ids)).await?;
            let targets = Targets::Ids(current_attempts(store, ids).await?);
            Ok(BulkPreview { counts, targets })
        }
    }
}

/// Previews a bulk that cancels this selection; changes nothing. A filter selects executions that wait or run, and were
/// claimed by `until`.
///
/// # Errors
///
/// As [`preview`].
pub async fn preview_cancel(
    store: &Store,
    selection: &Selection<ExecutionFilter>,
    until: Option<DateTime<Utc>>,
) -> Result<BulkPreview, OperationError> {
    check_passed(store, until).await?;
    match selection {
        Selection::Filter(filter) => {
            let filter = &scope::narrow(store, &**filter)?;
            let counts = bulk::preview_cancel(store, filter, until).await?;
            Ok(BulkPreview { counts, targets: Targets::Filter(json!(filter)) })
        }
        Selection::Ids(ids) => {
            let counts = bulk::preview_cancel_of_ids(store, &raw(ids)).await?;
            let targets = Targets::Ids(current_attempts(store, ids).await?);
            Ok(BulkPreview { counts, targets })
        }
    }
}

/// Refuses the instant of a preview that lies ahead: a bulk up to it would take failures that nobody has seen.
async fn check_passed(store: &Store, until: Option<DateTime<Utc>>) -> Result<(), OperationError> {
    let Some(until) = until else { return Ok(()) };
    if until > status::clock(store).await? {
        let problem = "lies ahead; send back that of a preview";
        return Err(InvalidRequest::ahead("previewed_at", problem).into());
    }
    Ok(())
}

fn raw(ids: &[ExecutionId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.get()).collect()
}

impl BulkPreview {
    /// Returns the executions that were selected by their ids, each with its attempt number; none for a filter.
    pub fn seen(&self) -> &[(ExecutionId, AttemptNumber)] {
        match &self.targets {
            Targets::Filter(_) => &[],
            Targets::Ids(ids) => ids,
        }
    }

    /// Acts on executions selected by their ids only at the attempt numbers that the operator has seen earlier.
    #[must_use]
    pub fn at_attempts(mut self, seen: &[(ExecutionId, AttemptNumber)]) -> Self {
        if let Targets::Ids(ids) = &mut self.targets {
            for (id, attempt) in ids {
                let earlier = seen.iter().find(|(seen, _)| seen == id);
                *attempt = earlier.map_or(*attempt, |(_, earlier)| *earlier);
            }
        }
        self
    }

    /// Refuses a bulk whose selection has another size than its operator has seen.
    ///
    /// # Errors
    ///
    /// [`Conflict::Other`] with both sizes.
    pub fn check_count(&self, seen: u64) -> Result<(), Conflict> {
        let count = self.counts.count;
        if count == seen {
            return Ok(());
        }
        let text =
            format!("{count} executions are selected, and you have seen {seen}; preview it again");
        Err(Conflict::Other(text))
    }

    /// Returns whether it selects more executions than its operator has seen, as far as a preview counts: this many, and whether there were more. It
    /// may select fewer: some have ended, or somebody has acted on them.
    #[must_use]
    pub const fn has_grown(&self, seen: u64, has_more: bool) -> bool {
        self.counts.count > seen || (self.counts.more && !has_more)
    }

    /// Refuses a bulk that has other executions than those who approved it have seen, as far as the number of each job shows, among the first 100,000.
    /// Of what waits or runs, some has ended meanwhile; then it has fewer.
    ///
    /// # Errors
    ///
    /// [`Conflict::Other`].
    pub(crate) fn check_approved(
        &self,
        kind: BulkKind,
        seen: &BulkProposal,
    ) -> Result<(), Conflict> {
        let now: BTreeMap<_, _> = self.counts.jobs.iter().cloned().collect();
        let then: BTreeMap<_, _> = seen.jobs.iter().cloned().collect();
        let is_equal = now == then && self.counts.more == seen.has_more;
        let is_part = || {
            let is_within =
                |(job, count): (&String, &u64)| then.get(job).is_some_and(|then| count <= then);
            self.counts.more <= seen.has_more && now.iter().all(is_within)
        };
        if is_equal || kind == BulkKind::Cancel && is_part() {
            return Ok(());
        }
        let (count, before) = (self.counts.count, seen.count);
        let text = if count == before {
            "executions of other jobs are selected than when it was requested; request it again"
                .to_owned()
        } else {
            format!(
                "{count} executions are selected, and {before} were when it was requested; request it again"
            )
        };
        Err(Conflict::Other(text))
    }

    /// Refuses a bulk without executions.
    ///
    /// # Errors
    ///
    /// [`Conflict::NoExecutions`].
    pub fn check(&self) -> Result<(), Conflict> {
        if self.counts.count == 0 {
            return Err(Conflict::NoExecutions { left_out: self.counts.muted.clone() });
        }
        Ok(())
    }

    /// Creates the previewed bulk, and returns its number, unless a rule demands the approval of others. A filter selects executions that
    /// had failed (to be cancelled: been claimed) by the preview.
    ///
    /// A crash before the commit leaves nothing; after it, the schedulers carry the bulk out.
    ///
    /// # Errors
    ///
    /// [`Conflict::NoExecutions`], and those of the database.
    pub async fn create(
        &self,
        store: &Store,
        action: BulkAction<'_>,
        actor: &Actor,
    ) -> Result<Outcome<i64>, OperationError> {
        self.check()?;
        let cleared = match self.proposal(action) {
            None => Outcome::Done(Clearance::UNRULED),
            Some(proposal) => {
                Gate::load(store).await?.clear(store, &proposal, (actor, action.reason)).await?
            }
        };
        match cleared {
            Outcome::Waits(request) => Ok(Outcome::Waits(request)),
            Outcome::Done(clearance) => {
                Ok(Outcome::Done(self.create_cleared(store, action, clearance, actor).await?))
            }
        }
    }

    /// Returns what the bulk needs; `None`: nobody else's approval.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn demand(
        &self,
        store: &Store,
        action: BulkAction<'_>,
    ) -> Result<Option<ApprovalDemand>, OperationError> {
        match self.proposal(action) {
            Some(proposal) => gate::preview(store, &proposal).await,
            None => Ok(None),
        }
    }

    /// Makes the proposal of this bulk; `None`: no rule concerns it.
    pub(super) fn proposal(&self, action: BulkAction<'_>) -> Option<Proposal> {
        let make = match action.kind {
            BulkKind::Requeue => Proposal::BulkRequeue,
            BulkKind::Discard => Proposal::BulkDiscard,
            BulkKind::Cancel => Proposal::BulkCancel,
            BulkKind::Restore => return None,
        };
        let (filter, ids) = match &self.targets {
            Targets::Filter(filter) => (Some(filter.clone()), Vec::new()),
            Targets::Ids(ids) => {
                (None, ids.iter().map(|(id, attempt)| (id.get(), attempt.get())).collect())
            }
        };
        Some(make(BulkProposal {
            filter,
            ids,
            previewed_at: self.counts.previewed_at,
            count: self.counts.count,
            has_more: self.counts.more,
            jobs: self.counts.jobs.clone(),
            rate: action.rate.map(|rate| rate.to_string()),
            canary: action.canary,
            pool: action.pool.map(str::to_owned),
            verify: action.verify.to_store(true).unwrap_or_default().to_owned(),
        }))
    }

    /// Creates a bulk that needs nobody's approval, or has it.
    pub(crate) async fn create_cleared(
        &self,
        store: &Store,
        action: BulkAction<'_>,
        clearance: Clearance,
        actor: &Actor,
    ) -> Result<i64, OperationError> {
        let any = bulk::any_job_has_verify_task(store).await?;
        let new = NewBulk {
            kind: action.kind,
            selector: match &self.targets {
                Targets::Filter(filter) => BulkSelector::Filter(filter),
                Targets::Ids(ids) => BulkSelector::Ids(ids),
            },
            previewed_at: self.counts.previewed_at,
            rate: action.rate,
            canary: action.canary,
            pool: action.pool,
            verify: action.verify.to_store(any).filter(|_| action.kind == BulkKind::Requeue),
        };
        let by = actor.because(action.reason);
        Ok(bulk::create_with(store, &new, clearance.claim(), by).await?)
    }
}

/// Returns a bulk whose discards can be taken back: it has discarded, and has ended.
///
/// # Errors
///
/// [`InvalidRequest`] for a bulk of another kind, [`Conflict::BulkStillDiscards`] for one that still runs.
pub async fn find_discarding(store: &Store, id: i64) -> Result<Bulk, OperationError> {
    let bulk = find(store, id).await?;
    if bulk.kind != BulkKind::Discard.as_str() {
        let text = format!("bulk {id} was a {}, there is nothing to restore", bulk.kind);
        return Err(InvalidRequest::Other(text).into());
    }
    if !matches!(bulk.state.as_str(), "done" | "stopped") {
        return Err(Conflict::BulkStillDiscards { id, state: bulk.state }.into());
    }
    Ok(bulk)
}

/// Checks that a bulk has discarded executions.
///
/// # Errors
///
/// [`Conflict::NothingDiscarded`].
pub const fn check_discarded(bulk: &Bulk) -> Result<(), Conflict> {
    if bulk.done == 0 { Err(Conflict::NothingDiscarded(bulk.id)) } else { Ok(()) }
}

/// Creates a bulk that takes the discards of `discarding` back, and returns its number.
///
/// # Errors
///
/// [`Conflict::NothingDiscarded`].
pub async fn create_restore(
    store: &Store,
    discarding: &Bulk,
    rate: Option<Rate>,
    (actor, reason): (&Actor, Option<&str>),
) -> Result<i64, OperationError> {
    check_discarded(discarding)?;
    let new = NewBulk {
        kind: BulkKind::Restore,
        selector: BulkSelector::Bulk(discarding.id),
        previewed_at: status::clock(store).await?,
        rate,
        canary: None,
        pool: None,
        verify: None,
    };
    Ok(bulk::create(store, &new, actor.because(reason)).await?)
}

#[cfg(test)]
mod tests;
