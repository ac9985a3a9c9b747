//! Settles the firings that were set aside, in batches, by an operator's decision.

use serde_json::json;
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::plan::{Gap, GapReason, Plan};
use sqlx::PgConnection;

use super::{
    HoldDecision, MAX_COUNTED_LATE_JOBS, PrecedingRuns, SettleError, SettledHold, plan_release,
};
use crate::connection::client_timeout::WithTimeout;
use crate::firing::gaps::{GapCause, GapRow};
use crate::firing::{Claim, ClaimTransaction, DueJob, HeldRun};
use crate::notifications::Notification;
use crate::operator::{
    AuditContext, NewAction, is_lock_timeout, notify, record_actions, set_lock_timeout,
};
use crate::{Now, Store, StoreError};

/// Maximum number of jobs that one transaction decides.
const MAX_BATCH_JOBS: i64 = 100;
/// Number of rows after which a transaction takes no further job. One job adds at most about a thousand for each run.
const MAX_BATCH_ROWS: usize = 5_000;
/// How often to try to end a hold while planners keep setting firings aside.
const MAX_TRIES: usize = 5;

/// Decides the firings that were set aside, of the jobs `names`, or of all, which ends the hold. `fresh_id` yields
/// the id of each new execution, `claimed_by` is `<instance>:<pid>` of the caller.
///
/// # Errors
///
/// [`SettleError`]; earlier batches stay decided.
pub async fn settle(
    store: &Store,
    (verdict, names): (HoldDecision, Option<&[String]>),
    (by, claimed_by): (AuditContext<'_>, &str),
    mut fresh_id: impl FnMut() -> ExecutionId,
    now: Now,
) -> Result<SettledHold, SettleError> {
    let mut settled = SettledHold::default();
    for _ in 0..MAX_TRIES {
        let mut after = None;
        loop {
            let mut transaction = ClaimTransaction::begin(store, now).await?;
            let batch = Batch { verdict, names, after, by, claimed_by };
            let done = batch.settle(&mut transaction, &mut fresh_id, &mut settled).await;
            after = done.map_err(settle_error)?;
            transaction.commit().await?;
            if after.is_none() {
                break;
            }
        }
        settled.unreadable.sort_unstable();
        settled.unreadable.dedup();
        if names.is_some() || !settled.unreadable.is_empty() {
            break;
        }
        if let Some(late_jobs) = end(store, verdict, by, now).await.map_err(settle_error)? {
            settled.ended = true;
            settled.late_jobs = late_jobs;
            break;
        }
    }
    Ok(settled)
}

fn settle_error(error: StoreError) -> SettleError {
    match error {
        StoreError::Unavailable(error) if is_lock_timeout(&error) => SettleError::Locked,
        error => error.into(),
    }
}

/// The input of one transaction.
struct Batch<'a> {
    verdict: HoldDecision,
    names: Option<&'a [String]>,
    after: Option<JobId>,
    by: AuditContext<'a>,
    claimed_by: &'a str,
}

/// The rows that one transaction writes.
#[derive(Default)]
struct Decided {
    claims: Vec<Claim>,
    gaps: Vec<GapRow>,
    forgotten: Vec<HeldRun>,
    actions: Vec<NewAction>,
}

impl Batch<'_> {
    /// Decides up to [`MAX_BATCH_JOBS`] jobs; returns the last, `None` after all of them.
    async fn settle(
        &self,
        transaction: &mut ClaimTransaction<'_>,
        fresh_id: &mut impl FnMut() -> ExecutionId,
        settled: &mut SettledHold,
    ) -> Result<Option<JobId>, StoreError> {
        set_lock_timeout(transaction.connection()).await.map_err(StoreError::from)?;
        let held = transaction.held_jobs(self.names, self.after, MAX_BATCH_JOBS).await?;
        let mut decided = Decided::default();
        let mut last = held.last;
        let mut before = self.after;
        for job in &held.due.jobs {
            if decided.claims.len() >= MAX_BATCH_ROWS {
                last = before;
                break;
            }
            before = Some(job.id);
            let runs: Vec<_> = held.runs.iter().filter(|run| run.job_id == job.id).collect();
            // Another operator has decided it meanwhile.
            if runs.is_empty() {
                continue;
            }
            // Without a readable schedule it can only be discarded.
            if self.verdict == HoldDecision::Release && job.timetable().is_err() {
                settled.unreadable.push(job.name.clone());
                continue;
            }
            self.decide(job, &runs, fresh_id, &mut decided)?;
            settled.jobs += 1;
        }
        for job in &held.due.unreadable {
            let runs: Vec<_> = held.runs.iter().filter(|run| run.job_id == job.id).collect();
            if runs.is_empty() {
                continue;
            }
            if self.verdict == HoldDecision::Release {
                settled.unreadable.push(job.name.clone());
                continue;
            }
            decided.gaps.extend(runs.iter().map(|run| self.given_up(run)));
            let firings = runs.iter().map(|run| u64::from(run.count)).sum();
            decided.actions.push(self.action(job.id, firings, 0));
            decided.forgotten.extend(runs.into_iter().cloned());
            settled.jobs += 1;
        }
        let inserted = transaction.insert(&mut decided.claims, self.claimed_by).await?;
        let is_new = |claim: &&Claim| claim.skip_reason.is_none() && inserted.contains(&claim.id);
        let runs: Vec<JobId> =
            decided.claims.iter().filter(is_new).map(|claim| claim.job_id).collect();
        transaction.count_runs(&runs).await?;
        transaction.record_gaps(&decided.gaps).await?;
        transaction.forget_held(&decided.forgotten).await?;
        let skips = decided.claims.iter().filter(|claim| claim.skip_reason.is_some());
        let skipped = skips.filter(|claim| inserted.contains(&claim.id)).count();
        settled.claimed += inserted.len() - skipped;
        settled.skipped += skipped;
        settled.known += decided.claims.len() - inserted.len();
        settled.missed += decided.gaps.iter().map(|gap| u64::from(gap.count)).sum::<u64>();
        if let Some(at) = held.now {
            record_actions(transaction.connection(), self.by.actor, &decided.actions, at).await?;
            notify(transaction.connection(), Notification::Jobs).await?;
        }
        Ok(last)
    }

    fn decide(
        &self,
        job: &DueJob,
        runs: &[&HeldRun],
        fresh_id: &mut impl FnMut() -> ExecutionId,
        decided: &mut Decided,
    ) -> Result<(), StoreError> {
        let mut before = PrecedingRuns::first_of(job);
        let (mut firings, mut claimed) = (0, 0);
        for run in runs {
            firings += u64::from(run.count);
            decided.forgotten.push((*run).clone());
            if self.verdict == HoldDecision::Discard {
                decided.gaps.push(self.given_up(run));
                continue;
            }
            let plan = plan_release(job, run, before)?;
            before.add(&plan);
            let into_key = coalescing_key(job, run, &plan);
            decided.gaps.extend(plan.gaps.iter().map(|gap| {
                let into_key = into_key.clone().filter(|_| gap.reason == GapReason::Coalesced);
                GapRow::of(job.id, gap).with_cause(GapCause { into_key, ..GapCause::default() })
            }));
            for firing in plan.firings {
                claimed += 1;
                decided.claims.push(Claim::of(job, firing, fresh_id()));
            }
        }
        decided.actions.push(self.action(job.id, firings, claimed));
        Ok(())
    }

    fn given_up(&self, run: &HeldRun) -> GapRow {
        let HeldRun { first, last, count, .. } = *run;
        let gap = Gap { first, last, count, reason: GapReason::Held };
        GapRow::of(run.job_id, &gap).with_cause(GapCause {
            actor: Some(self.by.actor.to_owned()),
            why: self.by.reason.map(str::to_owned),
            into_key: None,
        })
    }

    fn action(&self, job: JobId, firings: u64, claimed: usize) -> NewAction {
        NewAction {
            action: match self.verdict {
                HoldDecision::Release => "release_catch_up",
                HoldDecision::Discard => "discard_catch_up",
            },
            job_id: job.get(),
            execution_id: None,
            reason: self.by.reason.map(str::to_owned),
            before: Some(json!({"held": firings})),
            after: Some(json!({"executions": claimed})),
        }
    }
}

/// Returns the key of the firing that runs for the coalesced ones of a run: one of the run, or the next one after it,
/// which was on time.
fn coalescing_key(job: &DueJob, run: &HeldRun, plan: &Plan) -> Option<String> {
    if let Some(firing) = plan.firings.first() {
        return Some(firing.key.clone());
    }
    let timetable = job.timetable().ok()?;
    timetable.key_of(timetable.next_after(run.last)?)
}

/// Ends the hold if no firing is set aside any more. It waits for planners that are setting firings aside; later ones
/// find no hold. Returns [`SettledHold::late_jobs`]; `None` if firings are set aside.
async fn end(
    store: &Store,
    verdict: HoldDecision,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Option<i64>, StoreError> {
    let mut transaction = ClaimTransaction::begin(store, now).await?;
    let connection = transaction.connection();
    set_lock_timeout(&mut *connection).await.map_err(StoreError::from)?;
    sqlx::query!("-- lock_hold\nSELECT id FROM sexton.holds WHERE released_at IS NULL FOR UPDATE")
        .fetch_optional(WithTimeout(&mut *connection))
        .await?;
    let left = sqlx::query_scalar!(
        r#"-- anything_held
        SELECT EXISTS (SELECT FROM sexton.held_firings) AS "left!""#
    )
    .fetch_one(WithTimeout(&mut *connection))
    .await?;
    if left {
        return Ok(None);
    }
    let late = match verdict {
        HoldDecision::Release => 0,
        HoldDecision::Discard => late_jobs(&mut *connection, now).await?,
    };
    end_hold(connection, verdict, by, now).await?;
    notify(connection, Notification::Jobs).await?;
    transaction.commit().await?;
    Ok(Some(late))
}

/// Counts active jobs whose firings are late, up to [`MAX_COUNTED_LATE_JOBS`].
async fn late_jobs(connection: &mut PgConnection, now: Now) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- late_jobs
        SELECT count(*) AS "late!" FROM (
            SELECT FROM sexton.jobs
            WHERE status = 'active' AND next_fire_at < coalesce($1, now()) - interval '1 minute'
            LIMIT $2) late"#,
        now,
        MAX_COUNTED_LATE_JOBS
    )
    .fetch_one(WithTimeout(connection))
    .await?)
}

async fn end_hold(
    connection: &mut PgConnection,
    verdict: HoldDecision,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- end_hold
        WITH h AS (
            UPDATE sexton.holds SET released_at = coalesce($1, now()), released_by = $2, released_as = $3,
                why = $4
            WHERE released_at IS NULL
            RETURNING id, reason, last_seen, noticed_at)
        INSERT INTO sexton.operator_actions (at, actor, action, reason, before, after)
        SELECT coalesce($1, now()), $2, 'end_hold', $4,
               jsonb_build_object('hold', id, 'reason', h.reason, 'last_seen', last_seen,
                                  'noticed_at', noticed_at),
               jsonb_build_object('released_as', $3::text)
        FROM h",
        now,
        by.actor,
        verdict.as_str(),
        by.reason
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
