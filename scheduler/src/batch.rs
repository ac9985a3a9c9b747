//! Plans a batch of due jobs: what one claim transaction writes. Pure.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::key;
use sexton_model::plan::{Disposition, Due, GapReason, Plan, Timetable, plan_at_most};
use sexton_store::cursors::MovedCursor;
use sexton_store::firing::{Claim, DueJob, GapBehind, GapRow, UnreadableJob};
use sexton_store::tickets::OwedTicket;

use crate::timetables::Timetables;

/// Rows after which no further job is planned in the same transaction. One job adds at most about a
/// thousand.
const ENOUGH_ROWS: usize = 5_000;
/// Firings of one job that are looked at for one transaction; the planner comes back for the rest.
const FIRINGS_OF_A_JOB: usize = 2_000;

/// What a claim transaction writes.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Rows, in the order of the jobs.
    pub(crate) claims: Vec<Claim>,
    /// For each of `claims` the index of its job.
    job_of: Vec<usize>,
    /// Claims that take the place of what is under way of their jobs, if they are new.
    pub(crate) replacing: Vec<(JobId, ExecutionId)>,
    /// Where the planned jobs stand next.
    pub(crate) cursors: Vec<(JobId, Option<DateTime<Utc>>)>,
    /// Firings without rows.
    pub(crate) gaps: Vec<GapRow>,
    /// Cursors that stood elsewhere by older data of the zones.
    pub(crate) moved: Vec<MovedCursor>,
    /// Jobs whose schedule makes no timetable.
    pub(crate) unreadable: Vec<UnreadableJob>,
    /// Whether firings are left that are due: of jobs not planned for want of room, or of a job with
    /// very many.
    pub(crate) more: bool,
}

impl Batch {
    /// Plans `jobs` in their order until there are enough rows.
    pub(crate) fn plan(
        jobs: &[DueJob],
        timetables: &mut Timetables,
        mut id: impl FnMut(DateTime<Utc>) -> ExecutionId,
    ) -> Self {
        let mut batch = Self::default();
        for (index, job) in jobs.iter().enumerate() {
            if batch.claims.len() >= ENOUGH_ROWS {
                batch.more = true;
                break;
            }
            match timetables.of(job) {
                Ok(timetable) => {
                    let Some(next_fire_at) = batch.cursor(job, &timetable) else {
                        batch.cursors.push((job.id, None));
                        continue;
                    };
                    let due = Due {
                        timetable: &timetable,
                        overlap: job.overlap,
                        misfire: job.misfire,
                        next_fire_at,
                        under_way: job.under_way,
                    };
                    let plan = plan_at_most(&due, job.now, FIRINGS_OF_A_JOB);
                    batch.add(index, job, plan, &mut id);
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

    /// Where the job's cursor stands by this program's data of the zones.
    fn cursor(&mut self, job: &DueJob, timetable: &Timetable) -> Option<DateTime<Utc>> {
        let Some(planned_until) = job.outdated_since else { return Some(job.next_fire_at) };
        let cursor = timetable.next_after(planned_until);
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
        plan: Plan,
        id: &mut impl FnMut(DateTime<Utc>) -> ExecutionId,
    ) {
        // After more firings than one call looks at, the one that runs for these is not known yet.
        let runs = plan.firings.first().map(|firing| firing.key.clone());
        let gaps = plan.gaps;
        for firing in plan.firings {
            let template = job.idempotency_template.as_deref();
            let id = id(job.now);
            let skipped = matches!(firing.disposition, Disposition::Skipped(_));
            if !skipped && job.overlap.replaces(job.under_way) {
                self.replacing.push((job.id, id));
            }
            self.job_of.push(index);
            self.claims.push(Claim {
                id,
                job_id: job.id,
                idempotency_key: key::idempotency(template, &job.name, &firing.key),
                execution_key: firing.key,
                scheduled_for: firing.scheduled_for,
                skip_reason: match firing.disposition {
                    Disposition::Run | Disposition::Waits(_) => None,
                    Disposition::Skipped(reason) => Some(reason.as_str().to_owned()),
                },
                waits: match firing.disposition {
                    Disposition::Waits(why) => Some(why),
                    Disposition::Run | Disposition::Skipped(_) => None,
                },
            });
        }
        self.gaps.extend(gaps.into_iter().map(|gap| GapRow {
            job_id: job.id,
            first: gap.first,
            last: gap.last,
            count: gap.count,
            reason: gap.reason.as_str().to_owned(),
            behind: GapBehind {
                into_key: runs.clone().filter(|_| gap.reason == GapReason::Coalesced),
                ..GapBehind::default()
            },
        }));
        self.more |= plan.next_fire_at.is_some_and(|next| next <= job.now);
        self.cursors.push((job.id, plan.next_fire_at));
    }

    /// Of the claims that take others' places, those that became new rows.
    pub(crate) fn replacements(&self, inserted: &[ExecutionId]) -> Vec<(JobId, ExecutionId)> {
        let new = |(_, id): &&(JobId, ExecutionId)| inserted.contains(id);
        self.replacing.iter().filter(new).copied().collect()
    }

    /// How many of the claims that became new rows wait until their jobs are free.
    pub(crate) fn waiters(&self, inserted: &[ExecutionId]) -> usize {
        let waits = self.claims.iter().filter(|claim| claim.waits.is_some());
        waits.filter(|claim| inserted.contains(&claim.id)).count()
    }

    /// The tickets of those claims that became new rows and are to run now. `jobs` are the planned ones.
    pub(crate) fn tickets(self, jobs: &[DueJob], inserted: &[ExecutionId]) -> Vec<OwedTicket> {
        let inserted: HashSet<ExecutionId> = inserted.iter().copied().collect();
        let runs = self.claims.into_iter().zip(self.job_of);
        let now = |claim: &Claim| claim.skip_reason.is_none() && claim.waits.is_none();
        runs.filter(|(claim, _)| now(claim) && inserted.contains(&claim.id))
            .map(|(claim, index)| claim.into_ticket(&jobs[index]))
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod sample;

#[cfg(test)]
mod tests {
    use sexton_model::job::{Misfire, MisfirePolicy, Overlap};
    use uuid::Uuid;

    use super::sample::job;
    use super::*;

    fn plan(jobs: &[DueJob]) -> Batch {
        let mut next = 1_000;
        Batch::plan(jobs, &mut Timetables::default(), |_| {
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
        let keys: Vec<_> = tickets.iter().map(|owed| &*owed.ticket.idempotency_key).collect();
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
        assert_eq!(
            batch.cursors,
            [(jobs[1].id, Some(jobs[1].next_fire_at + chrono::Days::new(1)))]
        );
    }

    #[test]
    fn a_transaction_stays_small_and_says_that_more_is_due() {
        let late = |number| {
            let mut job = job(number, "* * * * * *");
            job.misfire = Misfire {
                policy: MisfirePolicy::FireAll,
                window: std::time::Duration::from_hours(24),
                limit: 1_000,
            };
            job.now = job.next_fire_at + chrono::Duration::seconds(1_500);
            job
        };
        let jobs: Vec<_> = (1..=50).map(late).collect();
        let batch = plan(&jobs);
        assert!(batch.more);
        assert!(batch.claims.len() < ENOUGH_ROWS + FIRINGS_OF_A_JOB, "{}", batch.claims.len());
        assert!(batch.cursors.len() < jobs.len());
    }
}
