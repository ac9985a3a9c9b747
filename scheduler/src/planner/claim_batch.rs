//! Plans a batch of due jobs: the writes of one claim transaction. Pure.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::plan::{
    Cursor, Disposition, Gap, GapReason, Plan, PlanInput, Timetable, excluded_gaps, first_firing,
    plan_at_most,
};
use sexton_store::cursors::MovedCursor;
use sexton_store::firing::{Claim, CursorUpdate, DueJob, UnreadableJob};
use sexton_store::gaps::{GapCause, GapRow};
use sexton_store::tickets::UnpublishedTicket;

use super::timetable_cache::TimetableCache;

/// Once a transaction has this many rows, no further job is planned in it. One job adds at most about a
/// thousand.
const MAX_BATCH_ROWS: usize = 5_000;

/// The writes of a claim transaction.
#[derive(Debug, Default)]
pub(crate) struct ClaimBatch {
    /// The claims, in the order of the jobs.
    pub(crate) claims: Vec<Claim>,
    /// The index of each claim's job.
    job_of: Vec<usize>,
    /// The claims that replace a running execution of their job, if they are new.
    pub(crate) replacing: Vec<(JobId, ExecutionId)>,
    /// The next cursors of the planned jobs.
    pub(crate) cursors: Vec<CursorUpdate>,
    /// The number of firings that may still run, for jobs with a limit.
    runs_left: HashMap<JobId, u32>,
    /// Firings without rows.
    pub(crate) gaps: Vec<GapRow>,
    /// Late firings that are kept aside while catch-up is held.
    pub(crate) held: Vec<(JobId, Gap)>,
    /// Cursors that older time zone data had computed differently.
    pub(crate) moved: Vec<MovedCursor>,
    /// Jobs whose schedule is invalid.
    pub(crate) unreadable: Vec<UnreadableJob>,
    /// Whether due firings remain, of jobs that were not planned for lack of room.
    pub(crate) more: bool,
}

impl ClaimBatch {
    /// Plans `jobs` in their order until there are enough rows; `held`: catch-up is held.
    pub(crate) fn plan(
        jobs: &[DueJob],
        held: bool,
        timetable_cache: &mut TimetableCache,
        mut id: impl FnMut(DateTime<Utc>) -> ExecutionId,
    ) -> Self {
        let mut batch = Self::default();
        for (index, job) in jobs.iter().enumerate() {
            if batch.claims.len() >= MAX_BATCH_ROWS {
                batch.more = true;
                break;
            }
            match timetable_cache.of(job) {
                Ok(timetable) => {
                    let Some(next_fire_at) = batch.cursor(job, &timetable) else {
                        batch.cursors.push(CursorUpdate { job: job.id, next: None, runs: 0 });
                        continue;
                    };
                    let runs_left = job.constraints.runs_left(job.runs_used);
                    let due = PlanInput {
                        timetable: &timetable,
                        overlap: job.overlap,
                        misfire: job.misfire,
                        next_fire_at,
                        under_way: job.under_way,
                        held,
                    };
                    let plan = plan_at_most(&due, runs_left, job.now);
                    batch.runs_left.extend(runs_left.map(|runs_left| (job.id, runs_left)));
                    batch.add(index, job, &timetable, plan, &mut id);
                }
                Err(error) => batch.unreadable.push(UnreadableJob {
                    id: job.id,
                    name: job.name.clone(),
                    why: error.to_string(),
                }),
            }
        }
        batch
    }

    /// Returns the job's cursor by this program's time zone data.
    fn cursor(&mut self, job: &DueJob, timetable: &Timetable) -> Option<DateTime<Utc>> {
        let Some(planned_until) = job.outdated_since else { return Some(job.next_fire_at) };
        let cursor = first_firing(timetable, planned_until);
        if cursor != Some(job.next_fire_at) {
            self.moved.push(MovedCursor {
                name: job.name.clone(),
                timezone: job.timezone.to_string(),
                from: job.next_fire_at,
                to: cursor,
                by: job.tz_version.clone(),
            });
        }
        cursor
    }

    fn add(
        &mut self,
        index: usize,
        job: &DueJob,
        timetable: &Timetable,
        plan: Plan,
        id: &mut impl FnMut(DateTime<Utc>) -> ExecutionId,
    ) {
        // Coalesced firings belong to the oldest firing that gets a row.
        let runs = plan.firings.first().map(|firing| firing.key.clone());
        let gaps = plan.gaps;
        for firing in plan.firings {
            let id = id(job.now);
            let skipped = matches!(firing.disposition, Disposition::Skipped(_));
            if !skipped && job.overlap.replaces(job.under_way) {
                self.replacing.push((job.id, id));
            }
            self.job_of.push(index);
            self.claims.push(Claim::of(job, firing, id));
        }
        let next = plan.next_fire_at.map(|nominal| Cursor::on(timetable, nominal));
        let excluded = collect_excluded_gaps(job, timetable, next);
        self.gaps.extend(gaps.iter().chain(&excluded).map(|gap| {
            let into_key = runs.clone().filter(|_| gap.reason == GapReason::Coalesced);
            GapRow::of(job.id, gap).with_cause(GapCause { into_key, ..GapCause::default() })
        }));
        self.held.extend(plan.held.map(|gap| (job.id, gap)));
        // If the limit of runs ended the plan, the next transaction knows how many are left.
        self.more |= next.is_some_and(|next| next.due <= job.now);
        self.cursors.push(CursorUpdate { job: job.id, next, runs: 0 });
    }

    /// Counts the runs of jobs that have a limit, by the claims that became new rows: a key that existed before
    /// counts nothing. A job without runs left has no next firing; its remaining due firings are left to the
    /// next transaction, which records them.
    pub(crate) fn count_runs(&mut self, inserted: &[ExecutionId], now: DateTime<Utc>) {
        if self.runs_left.is_empty() {
            return;
        }
        let inserted: HashSet<ExecutionId> = inserted.iter().copied().collect();
        let mut runs: HashMap<JobId, u32> = HashMap::new();
        for claim in &self.claims {
            if claim.skip_reason.is_none() && inserted.contains(&claim.id) {
                *runs.entry(claim.job_id).or_default() += 1;
            }
        }
        for moved in &mut self.cursors {
            let Some(runs_left) = self.runs_left.get(&moved.job) else { continue };
            moved.runs = runs.get(&moved.job).copied().unwrap_or(0);
            if moved.runs >= *runs_left {
                moved.next = moved.next.filter(|next| next.due <= now);
            }
        }
    }

    /// Returns those of the replacing claims that became new rows.
    pub(crate) fn replacements(&self, inserted: &[ExecutionId]) -> Vec<(JobId, ExecutionId)> {
        let new = |(_, id): &&(JobId, ExecutionId)| inserted.contains(id);
        self.replacing.iter().filter(new).copied().collect()
    }

    /// Returns how many new rows wait until their jobs are free.
    pub(crate) fn waiters(&self, inserted: &[ExecutionId]) -> usize {
        let waits = self.claims.iter().filter(|claim| claim.waits.is_some());
        waits.filter(|claim| inserted.contains(&claim.id)).count()
    }

    /// Returns how many new rows record a firing that does not run.
    pub(crate) fn skipped(&self, inserted: &[ExecutionId]) -> usize {
        let inserted: HashSet<ExecutionId> = inserted.iter().copied().collect();
        let skips = self.claims.iter().filter(|claim| claim.skip_reason.is_some());
        skips.filter(|claim| inserted.contains(&claim.id)).count()
    }

    /// Returns the claims with their jobs. `jobs` are the planned ones.
    pub(crate) fn with_jobs<'a>(
        &'a self,
        jobs: &'a [DueJob],
    ) -> impl Iterator<Item = (&'a Claim, &'a DueJob)> {
        self.claims.iter().zip(self.job_of.iter().map(|&index| &jobs[index]))
    }

    /// Returns the tickets of the new rows that are to run at once. `jobs` are the planned ones.
    pub(crate) fn tickets(
        self,
        jobs: &[DueJob],
        inserted: &[ExecutionId],
    ) -> Vec<UnpublishedTicket> {
        let inserted: HashSet<ExecutionId> = inserted.iter().copied().collect();
        let runs = self.claims.into_iter().zip(self.job_of);
        runs.filter(|(claim, _)| claim.runs_now() && inserted.contains(&claim.id))
            .map(|(claim, index)| claim.into_ticket(&jobs[index]))
            .collect()
    }
}

/// Collects the excluded nominal times up to the job's next cursor.
fn collect_excluded_gaps(job: &DueJob, timetable: &Timetable, next: Option<Cursor>) -> Vec<Gap> {
    let from = job.planned_until.unwrap_or(job.next_fire_at);
    let to = next.map_or(job.now, |next| next.nominal.min(job.now));
    // After the last allowed run the job has ended, so later instants are no firings.
    let is_last = next.is_none() && job.constraints.runs_left(job.runs_used) != Some(0);
    excluded_gaps(timetable, from, to, is_last)
}

#[cfg(test)]
pub(crate) mod test_jobs;

#[cfg(test)]
mod tests {
    use sexton_model::job::{Misfire, MisfirePolicy, Overlap};
    use uuid::Uuid;

    use super::test_jobs::job;
    use super::*;

    fn plan(jobs: &[DueJob]) -> ClaimBatch {
        let mut next = 1_000;
        ClaimBatch::plan(jobs, false, &mut TimetableCache::default(), |_| {
            next += 1;
            ExecutionId::new(Uuid::from_u128(next))
        })
    }

    #[test]
    fn each_job_gets_a_row_a_cursor_and_a_ticket_with_its_own_name() {
        let jobs = [job(1, "0 8 * * *"), job(2, "0 8 * * *")];
        let batch = plan(&jobs);
        assert_eq!(batch.cursors.len(), 2);
        assert!(!batch.more);
        let ids: Vec<_> = batch.claims.iter().map(|claim| claim.id).collect();
        let tickets = batch.tickets(&jobs, &ids);
        let keys: Vec<_> =
            tickets.iter().map(|unpublished| &*unpublished.ticket.idempotency_key).collect();
        assert_eq!(keys, ["job1:cron-2026-01-01T08:00:00Z", "job2:cron-2026-01-01T08:00:00Z"]);
    }

    #[test]
    fn a_key_that_was_there_before_and_a_skipped_firing_have_no_ticket() {
        let mut skipped = job(2, "0 8 * * *");
        skipped.overlap = Overlap::Skip;
        skipped.under_way.ready = true;
        let jobs = [job(1, "0 8 * * *"), skipped];
        let batch = plan(&jobs);
        assert_eq!(batch.claims[1].skip_reason.as_deref(), Some("overlap"));
        let second = batch.claims[1].id;
        assert!(batch.tickets(&jobs, &[second]).is_empty());
    }

    #[test]
    fn a_job_whose_expression_is_none_is_told_apart_and_the_others_are_planned() {
        let jobs = [job(1, "often"), job(2, "0 8 * * *")];
        let batch = plan(&jobs);
        assert_eq!(batch.unreadable.len(), 1);
        let next = jobs[1].next_fire_at + chrono::Days::new(1);
        let next = Some(Cursor { nominal: next, due: next });
        assert_eq!(batch.cursors, [CursorUpdate { job: jobs[1].id, next, runs: 0 }]);
    }

    #[test]
    fn a_transaction_stays_small_and_says_that_more_is_due() {
        let late = |number| {
            let mut job = job(number, "* * * * * *");
            job.misfire = Misfire {
                policy: MisfirePolicy::FireAll,
                window: std::time::Duration::from_hours(24),
                limit: 1_000,
                rate: None,
            };
            job.now = job.next_fire_at + chrono::Duration::seconds(1_500);
            job
        };
        let jobs: Vec<_> = (1..=50).map(late).collect();
        let batch = plan(&jobs);
        assert!(batch.more);
        assert!(batch.claims.len() < MAX_BATCH_ROWS + 1_100, "{}", batch.claims.len());
        assert!(batch.cursors.len() < jobs.len());
    }

    #[test]
    fn only_claims_that_became_rows_use_up_the_runs_of_a_job() {
        let limited = |runs_used| {
            let mut job = job(1, "* * * * * *");
            job.constraints.max_runs = Some(5);
            job.runs_used = runs_used;
            job.now = job.next_fire_at + chrono::Duration::milliseconds(3_500);
            job
        };
        for (used, taken, runs, ends) in
            [(0, 4, 4, false), (1, 4, 4, true), (1, 3, 3, false), (2, 3, 3, false)]
        {
            let jobs = [limited(used)];
            let mut batch = plan(&jobs);
            let ids: Vec<_> = batch.claims.iter().map(|claim| claim.id).take(taken).collect();
            batch.count_runs(&ids, jobs[0].now);
            let moved = batch.cursors[0];
            assert_eq!((moved.runs, moved.next.is_none()), (runs, ends), "{used} {taken}");
            // If a due firing may not run, the next transaction records it.
            assert_eq!(batch.more, used == 2, "{used}");
        }
    }
}
