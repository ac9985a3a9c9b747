//! Overlap: what the executions of a job do to one another, and whether that is what its policy says.
//!
//! Judged by hand: from the rows before and after, and not by the decision of `sexton_model` that made
//! them so.

use sexton_model::id::ExecutionId;
use sexton_model::job::Overlap;
use sexton_model::state::State;
use sexton_store::waiters;
use uuid::Uuid;

use super::broker::pick;
use super::case::Simulation;
use super::invariants::{Checker, invariant};
use super::op::Cut;
use super::rows::{Row, Rows};
use super::stop::Stop;

/// In the order in which an operation names them.
const POLICIES: [Overlap; 4] = [Overlap::Allow, Overlap::Skip, Overlap::Queue, Overlap::Replace];
/// Jobs with waiters that one look takes.
const MAX_JOBS_WITH_WAITERS: i64 = 10;

impl Simulation<'_> {
    /// Somebody applies the job with another policy.
    pub(super) async fn set_overlap(&mut self, job: u8, policy: u8) -> Result<(), Stop> {
        let Some(index) = pick(job, self.jobs.len()) else { return Ok(()) };
        let policy = POLICIES[usize::from(policy) % POLICIES.len()];
        sqlx::query("UPDATE sexton.jobs SET overlap = $2 WHERE id = $1")
            .bind(self.jobs[index].id)
            .bind(policy.as_str())
            .execute(self.store.pool())
            .await?;
        self.jobs[index].overlap = policy;
        Ok(())
    }

    /// A scheduler lets waiters go whose jobs are free.
    pub(super) async fn admit(&mut self, cut: Cut) -> Result<(), Stop> {
        let waiting =
            waiters::find_waiting(self.store, MAX_JOBS_WITH_WAITERS, Some(self.now)).await?;
        if waiting.free.is_empty() || !self.parts.admits {
            return Ok(());
        }
        let admission = waiters::admit(self.store, &waiting.free, Some(self.now)).await?;
        if cut == Cut::Before {
            drop(admission);
            return self.rolled_back().await;
        }
        self.writes();
        self.notes.admitted = true;
        let tickets = admission.commit().await?;
        if cut == Cut::No {
            self.schedulers
                .outbox
                .extend(tickets.into_iter().map(|unpublished| (unpublished, false)));
        }
        Ok(())
    }
}

impl Checker<'_> {
    /// The executions of a job among one another.
    pub(super) fn overlaps(
        &mut self,
        job: Uuid,
        policy: Overlap,
        before: &Rows,
        after: &Rows,
    ) -> Result<(), Stop> {
        let of_job = |rows: &Rows| -> Vec<Row> {
            rows.values().filter(|row| row.job == job && !row.overridden).cloned().collect()
        };
        let (before, after) = (of_job(before), of_job(after));
        let firings = after.iter().filter(|row| row.is_waiter() && row.waits_for() != "turn");
        invariant!(firings.count() <= 1, "more than one firing waits of job {job}");
        let let_go = after.iter().filter(|row| {
            row.state.is_under_way() && !row.is_waiter() && !self.ledger.by_hand.contains(&row.id)
        });
        let let_go: Vec<String> = let_go.map(Row::name).collect();
        if policy.one_at_a_time() && let_go.len() <= 1 {
            self.ledger.alone.insert(job);
        } else if !policy.one_at_a_time() {
            self.ledger.alone.remove(&job);
        }
        let alone = self.ledger.alone.contains(&job);
        invariant!(!alone || let_go.len() <= 1, "let go side by side: {let_go:?}");
        for row in &after {
            match before.iter().find(|was| was.id == row.id) {
                Some(was) => self.moved(was, row, policy, &before)?,
                None if self.notes.planned => claimed(row, policy, &before, &after)?,
                None => {}
            }
        }
        Ok(())
    }

    /// What has become of a row that was there.
    fn moved(&self, was: &Row, is: &Row, policy: Overlap, before: &[Row]) -> Result<(), Stop> {
        let name = || format!("{} becomes {}", was.name(), is.name());
        if let Some(by) = was.replaced_by {
            invariant!(is.replaced_by == Some(by), "a replacement is forgotten: {}", name());
            let ends = matches!(is.state, State::Running | State::Cancelled);
            invariant!(ends, "replaced, and it goes on: {}", name());
        } else if is.replaced_by.is_some() {
            let by_firing = self.notes.planned && policy == Overlap::Replace;
            invariant!(by_firing, "replaced by nobody: {}", name());
            let waits_for_turn = was.is_waiter() && was.waits_for() == "turn";
            invariant!(!waits_for_turn, "a firing replaced a triggered execution: {}", name());
        }
        if was.is_waiter() && !is.is_waiter() && is.state == State::Pending {
            invariant!(self.notes.admitted, "nobody admitted it: {}", name());
            let busy = |row: &&Row| row.state.is_under_way() && !row.is_waiter();
            let busy = before.iter().find(busy).map(Row::name);
            let free = policy == Overlap::Allow || busy.is_none();
            invariant!(free, "let go beside {busy:?}: {}", name());
        }
        invariant!(
            !(was.is_waiter() && is.state == State::Running),
            "opened while it waited: {}",
            name()
        );
        invariant!(!is.is_waiter() || !is.is_published(), "a waiter is published: {}", name());
        Ok(())
    }
}

/// A firing has got what its job's policy says, by what was there.
fn claimed(new: &Row, policy: Overlap, before: &[Row], after: &[Row]) -> Result<(), Stop> {
    let under_way: Vec<&Row> = before.iter().filter(|row| row.state.is_under_way()).collect();
    let now_of = |id: ExecutionId| after.iter().find(|row| row.id == id);
    let skipped = new.state == State::Skipped;
    // Those that were claimed with it and are older.
    let with = after.iter().filter(|row| row.id < new.id && !before.iter().any(|b| b.id == row.id));
    let older = with.filter(|row| row.state != State::Skipped).count();
    let newer = after.iter().any(|row| row.id > new.id);
    match policy {
        Overlap::Allow => invariant!(!skipped && !new.is_waiter(), "not let go: {}", new.name()),
        Overlap::Skip => {
            let free = under_way.is_empty() && older == 0;
            invariant!(
                skipped != free && !new.is_waiter(),
                "skipped wrongly, or not: {}",
                new.name()
            );
        }
        Overlap::Queue => {
            let firing_waits = |row: &&&Row| row.is_waiter() && row.waits_for() != "turn";
            let waiting = under_way.iter().filter(firing_waits).count();
            let busy = under_way.len() + older;
            let room = if under_way.is_empty() { older < 2 } else { waiting + older < 1 };
            invariant!(skipped != room, "{busy} are under way: {}", new.name());
            invariant!(skipped || new.is_waiter() == (busy > 0), "{busy} others: {}", new.name());
        }
        Overlap::Replace => {
            invariant!(skipped == newer, "not the newest, or skipped: {}", new.name());
            if skipped {
                return Ok(());
            }
            for was in under_way {
                let waits_for_turn = was.is_waiter() && was.waits_for() == "turn";
                let is = now_of(was.id);
                let replaced = is.is_some_and(|is| is.replaced_by.is_some());
                invariant!(
                    waits_for_turn || replaced,
                    "{} goes on beside {}",
                    was.name(),
                    new.name()
                );
                let ends = |is: &Row| {
                    is.state == State::Cancelled
                        || (is.state == State::Running && is.cancel_requested)
                };
                invariant!(waits_for_turn || is.is_some_and(ends), "{} does not end", was.name());
            }
        }
    }
    Ok(())
}
