//! Backfills past firings that have no execution, by the schedule's own keys, so that none runs twice.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::id::ExecutionId;
use sexton_model::rate::Rate;
use sexton_model::zone::Zone;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::approvals::ClaimedRequest;
use sexton_store::backfill::{
    ApprovedBackfill, Backfill, BackfillError, BackfilledFiring, BatchStart,
    MAX_BACKFILL_EXECUTIONS, create_batch,
};
use sexton_store::jobs::Job;
use sexton_store::ledger::zone_of;
use sexton_store::operator::AuditContext;
use uuid::Uuid;

use crate::actor::Actor;
use crate::approvals::gate::{self, ApprovalDemand, Gate, Outcome};
use crate::approvals::proposal::{BackfillProposal, Proposal};
use crate::error::{Conflict, InvalidRequest, OperationError};
use crate::instants::{self, TimeRangeRequest};
use crate::job_names;

/// Maximum number of firings examined.
const MAX_FIRINGS: u64 = 100_000;
/// Maximum number of firings listed one by one.
const MAX_LISTED: usize = 1_000;

/// A backfill, in texts as [`crate::instants`] parses them.
#[derive(Clone, Copy, Debug)]
pub struct BackfillRequest<'a> {
    /// The job's name.
    pub job: &'a str,
    /// Firings at or after this.
    pub since: &'a str,
    /// Firings before this, not in the future; `None`: until now.
    pub until: Option<&'a str>,
    /// The zone of times without an offset; `None`: the job's.
    pub zone: Option<Zone>,
    /// How many become due per time; `None`: all at once.
    pub rate: Option<Rate>,
    /// Whether the executions overlap with each other and with others, against the job's policy.
    pub allow_overlap: bool,
    /// The reason for the audit.
    pub reason: Option<&'a str>,
}

/// A range of one job's firings.
#[derive(Clone, Copy, Debug)]
pub struct BackfillRange<'a> {
    /// The first instant.
    pub since: DateTime<Utc>,
    /// The instant behind the last one.
    pub until: DateTime<Utc>,
    job: (Uuid, i32),
    request: BackfillRequest<'a>,
}

impl<'a> BackfillRequest<'a> {
    /// Parses the texts; `now` is the database's clock.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] for an instant that cannot be read.
    pub fn read(self, job: &Job, now: DateTime<Utc>) -> Result<BackfillRange<'a>, InvalidRequest> {
        let zone = self.zone.unwrap_or_else(|| zone_of(job));
        let texts = TimeRangeRequest { since: Some(self.since), until: self.until };
        let (since, until) = texts.read_until_now(zone, now)?;
        Ok(BackfillRange { since, until, job: (job.id, job.revision), request: self })
    }
}

impl<'a> BackfillRange<'a> {
    /// Makes the range that was requested; `None`: its rate cannot be read.
    pub(crate) fn of_proposal(proposal: &'a BackfillProposal, reason: &'a str) -> Option<Self> {
        let rate = proposal.rate.as_deref().map(str::parse).transpose().ok()?;
        let request = BackfillRequest {
            job: &proposal.job,
            since: "",
            until: None,
            zone: None,
            rate,
            allow_overlap: proposal.allow_overlap,
            reason: Some(reason),
        };
        let job = (proposal.job_id, proposal.revision);
        Some(Self { since: proposal.since, until: proposal.until, job, request })
    }

    /// Makes the document of a backfill, or of its preview.
    pub fn report(&self, totals: Totals, dry_run: bool) -> BackfillReport {
        let firings_are_all = totals.firing_count() == totals.listed.len() as u64;
        BackfillReport {
            job_name: self.request.job.to_owned(),
            dry_run,
            since: self.since,
            until: self.until,
            rate: self.request.rate.map(|rate| rate.to_string()),
            overlap_override: self.request.allow_overlap.then_some("allow"),
            made: totals.made,
            known: totals.known,
            first_due_at: totals.first_due_at,
            last_due_at: totals.last_due_at,
            firings: totals.listed.into_iter().map(ReportedFiring::new).collect(),
            firings_are_all,
            approval: None,
        }
    }

    /// Counts the executions that a backfill would make; changes nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] for a range that is too long, lies ahead, or has more than 20,000 firings without an
    /// execution, and for executions that would overlap against the job's policy.
    pub async fn preview(&self, store: &Store, actor: &Actor) -> Result<Totals, OperationError> {
        let preview = self.run_batches(store, actor, None, true).await?;
        if preview.made > MAX_BACKFILL_EXECUTIONS {
            let text = format!(
                "{} firings have no execution; {MAX_BACKFILL_EXECUTIONS} at most at once: narrow the range",
                preview.made
            );
            return Err(InvalidRequest::Other(text).into());
        }
        Ok(preview)
    }

    /// Claims the firings, batch by batch, each in its own transaction with its record in the audit, unless a rule demands the approval of
    /// others. After a crash the same request continues where this one ended.
    ///
    /// # Errors
    ///
    /// As [`Self::preview`]; [`Conflict::Other`] if every firing has an execution; [`OperationError::Failed`] for
    /// whatever happens after the first batch, which stays.
    pub async fn run(
        &self,
        store: &Store,
        actor: &Actor,
    ) -> Result<Outcome<Totals>, OperationError> {
        let preview = self.preview(store, actor).await?;
        Self::check_any(&preview)?;
        let (gate, by) = (Gate::load(store).await?, (actor, self.request.reason));
        match gate.clear(store, &self.proposal(&preview), by).await? {
            Outcome::Waits(request) => Ok(Outcome::Waits(request)),
            // Each batch is a transaction, so there is nothing that the clearance would end.
            Outcome::Done(_) => {
                Ok(Outcome::Done(self.run_batches(store, actor, None, false).await?))
            }
        }
    }

    /// Runs a backfill that was approved with so many firings. If another process has begun before, it goes on where that one ended. Each batch
    /// checks that the request is still this process's to carry out, and the job as it was.
    pub(crate) async fn run_approved(
        &self,
        store: &Store,
        actor: &Actor,
        count: u64,
        claimed: &ClaimedRequest,
    ) -> Result<Totals, OperationError> {
        let preview = self.preview(store, actor).await?;
        let made = preview.made;
        if made > count || made < count && !claimed.is_repeated {
            let text = format!(
                "{made} firings have no execution, and {count} had none when it was requested; request it again"
            );
            return Err(Conflict::Other(text).into());
        }
        if made == 0 {
            return Ok(preview);
        }
        let (job, revision) = self.job;
        let approved = ApprovedBackfill { claim: claimed.claim, job, revision };
        self.run_batches(store, actor, Some(approved), false).await
    }

    /// Returns what the backfill needs; `None`: nobody else's approval.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn demand(
        &self,
        store: &Store,
        preview: &Totals,
    ) -> Result<Option<ApprovalDemand>, OperationError> {
        gate::preview(store, &self.proposal(preview)).await
    }

    fn proposal(&self, preview: &Totals) -> Proposal {
        Proposal::Backfill(BackfillProposal {
            job: self.request.job.to_owned(),
            job_id: self.job.0,
            revision: self.job.1,
            since: self.since,
            until: self.until,
            rate: self.request.rate.map(|rate| rate.to_string()),
            allow_overlap: self.request.allow_overlap,
            count: preview.made,
        })
    }

    fn check_any(preview: &Totals) -> Result<(), Conflict> {
        if preview.made == 0 {
            let text = format!(
                "nothing to backfill: the range has {} firings, all with an execution",
                preview.known
            );
            return Err(Conflict::Other(text));
        }
        Ok(())
    }

    async fn run_batches(
        &self,
        store: &Store,
        actor: &Actor,
        approved: Option<ApprovedBackfill>,
        dry_run: bool,
    ) -> Result<Totals, OperationError> {
        let claimed_by = actor.process();
        let request = Backfill {
            job: self.request.job,
            from: self.since,
            to: instants::last_before(self.until),
            rate: self.request.rate,
            allow_overlap: self.request.allow_overlap,
            claimed_by: &claimed_by,
            approved,
            dry_run,
        };
        let mut sum = Totals::default();
        let by = actor.because(self.request.reason);
        match run_batches(store, request, by, &mut sum).await {
            Ok(()) => Ok(sum),
            Err(error) if dry_run || sum.made == 0 => Err(error),
            Err(error) => {
                let text = format!("{error}; {} executions were made before, and stay", sum.made);
                // The request that was approved ends with it. To others a refusal would say that nothing was changed.
                Err(if approved.is_some() && error.is_final() {
                    Conflict::Other(text).into()
                } else {
                    OperationError::Failed(text)
                })
            }
        }
    }
}

/// A backfill, or its preview, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfillReport {
    /// The job's name.
    pub job_name: String,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Firings at or after this.
    pub since: DateTime<Utc>,
    /// Firings before this.
    pub until: DateTime<Utc>,
    /// How many become due per time; `None`: all at once.
    pub rate: Option<String>,
    /// `allow`: the executions overlap, against the job's policy.
    pub overlap_override: Option<&'static str>,
    /// Number of new executions.
    pub made: u64,
    /// Number of firings that had an execution before.
    pub known: u64,
    /// When the first execution is due.
    pub first_due_at: Option<DateTime<Utc>>,
    /// When the last one is due.
    pub last_due_at: Option<DateTime<Utc>>,
    /// The first 1,000 firings.
    pub firings: Vec<ReportedFiring>,
    /// Whether these are all.
    pub firings_are_all: bool,
    /// Of a preview: what it needs from other people; `null`: nothing.
    pub approval: Option<ApprovalDemand>,
}

/// A firing of a backfill, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BackfilledFiring))]
pub struct ReportedFiring {
    /// Its nominal time.
    pub scheduled_for: DateTime<Utc>,
    /// Its key.
    pub execution_key: String,
    /// Its execution; `None`: a real run would make one.
    pub execution_id: Option<Uuid>,
    /// Whether the execution is new.
    pub made: bool,
    /// When the new execution is due.
    pub due_at: Option<DateTime<Utc>>,
}

impl ReportedFiring {
    fn new(firing: BackfilledFiring) -> Self {
        Self {
            scheduled_for: firing.scheduled_for,
            execution_key: firing.execution_key,
            execution_id: firing.execution,
            made: firing.due_at.is_some(),
            due_at: firing.due_at,
        }
    }
}

/// The result of a backfill, or of its preview.
#[derive(Debug, Default)]
pub struct Totals {
    /// Number of new executions.
    pub made: u64,
    /// Number of firings that had an execution before.
    pub known: u64,
    /// When the first execution is due.
    pub first_due_at: Option<DateTime<Utc>>,
    /// When the last one is due.
    pub last_due_at: Option<DateTime<Utc>>,
    /// The first 1,000 firings.
    pub listed: Vec<BackfilledFiring>,
}

impl Totals {
    fn add(&mut self, firings: Vec<BackfilledFiring>) {
        for firing in firings {
            match firing.due_at {
                Some(due) => {
                    self.made += 1;
                    self.first_due_at.get_or_insert(due);
                    self.last_due_at = Some(due);
                }
                None => self.known += 1,
            }
            if self.listed.len() < MAX_LISTED {
                self.listed.push(firing);
            }
        }
    }

    /// Returns the number of firings in the range.
    pub const fn firing_count(&self) -> u64 {
        self.made + self.known
    }
}

/// Runs all batches. An error leaves in `sum` what the batches before it have done.
async fn run_batches(
    store: &Store,
    request: Backfill<'_>,
    by: AuditContext<'_>,
    sum: &mut Totals,
) -> Result<(), OperationError> {
    let mut position: Option<BatchStart> = None;
    loop {
        let fresh_id = || ExecutionId::new(Uuid::now_v7());
        let batch = match create_batch(store, request, position, fresh_id, by, None).await {
            Ok(batch) => batch,
            Err(BackfillError::Missing(name)) => return Err(job_names::missing(store, &name).await),
            Err(error) => return Err(backfill_error(error)),
        };
        sum.add(batch.firings);
        if sum.firing_count() > MAX_FIRINGS {
            let text = format!("the range has more than {MAX_FIRINGS} firings: narrow it");
            return Err(InvalidRequest::Other(text).into());
        }
        position = batch.next;
        if !request.dry_run && sum.made > 0 {
            fault::point("console.backfilled");
        }
        if position.is_none() {
            return Ok(());
        }
    }
}

fn backfill_error(error: BackfillError) -> OperationError {
    match error {
        BackfillError::Overlap(_) => InvalidRequest::OverlapForbidden(error.to_string()).into(),
        BackfillError::Ahead { .. } => InvalidRequest::ahead("until", format!(": {error}")).into(),
        BackfillError::Backwards | BackfillError::Pruned(_) | BackfillError::Forgotten(_) => {
            InvalidRequest::Other(error.to_string()).into()
        }
        BackfillError::Changed(_) => Conflict::Other(error.to_string()).into(),
        BackfillError::Store(error) => error.into(),
        _ => OperationError::Failed(error.to_string()),
    }
}
