//! When all has come to its end, nothing is left in the hands of a bulk.

use chrono::TimeDelta;
use sexton_model::bulk::BulkState;
use sexton_model::state::State;

use super::super::case::Simulation;
use super::super::invariants::invariant;
use super::super::op::Op;
use super::super::schedulers::RETENTION_DAYS;
use super::super::stop::Stop;

impl Simulation<'_> {
    /// Of those that are held, operators let every other go on.
    pub(in crate::simulation) async fn resume_some(&mut self) -> Result<(), Stop> {
        let held = |state| matches!(state, BulkState::Stopped | BulkState::Paused);
        let count = self.bulks.values().filter(|bulk| held(bulk.state)).count();
        for index in (0..count).rev().step_by(2) {
            self.apply(Op::ResumeBulk { bulk: index as u8 }).await?;
        }
        Ok(())
    }

    /// A bulk that schedulers have still something to do about; a verify command may be silent for ever.
    pub(in crate::simulation) fn unfinished_bulk(&self) -> Option<String> {
        let waits = |state| matches!(state, BulkState::Preparing | BulkState::Running);
        let alive = self.bulks.values().find(|bulk| {
            let silent = bulk.asks("command") && bulk.count("unasked") > 0;
            bulk.state == BulkState::Preparing || (waits(bulk.state) && !silent)
        })?;
        let open = alive.count("unasked") + alive.count("waiting");
        Some(format!("a bulk is {} with {open} open items", alive.state.as_str()))
    }

    /// What operators did is recorded once; then retention takes what is over, with all that was its.
    pub(in crate::simulation) async fn bulks_are_over(&mut self) -> Result<(), Stop> {
        let controlled: Vec<i64> = self.ledger.bulks.steered.keys().copied().collect();
        if controlled.is_empty() {
            return Ok(());
        }
        let recorded: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT bulk_id, count(*) FROM sexton.operator_actions
             WHERE bulk_id = ANY ($1) AND execution_id IS NULL GROUP BY 1",
        )
        .bind(&controlled)
        .fetch_all(self.store.pool())
        .await?;
        invariant!(
            recorded.len() == controlled.len(),
            "{} of {controlled:?} are recorded",
            recorded.len()
        );
        for (id, lines) in recorded {
            let steered = self.ledger.bulks.steered.get(&id).copied().unwrap_or_default();
            invariant!(lines == 1 + steered, "{lines} lines, and {steered} times it was steered");
        }
        let long = TimeDelta::days(i64::from(RETENTION_DAYS) + 1);
        self.apply(Op::Wait { ms: long.num_milliseconds().unsigned_abs() }).await?;
        self.apply(Op::Prune).await?;
        let over = |state| matches!(state, BulkState::Stopped | BulkState::Done);
        let left = self.bulks.values().filter(|bulk| over(bulk.state)).count();
        invariant!(left == 0, "{left} bulks are there for ever");
        for row in self.rows.values().filter(|row| row.asks_about.is_some()) {
            let open = row.state.is_under_way() || row.state == State::Failed;
            let has = |bulk: &super::rows::Bulk| bulk.unheard().any(|id| id == row.id);
            let answered = self.ledger.bulks.answered.contains(&row.id);
            let may = !open || answered || self.bulks.values().any(has);
            invariant!(may, "nobody hears it: {}", row.name());
        }
        Ok(())
    }
}
