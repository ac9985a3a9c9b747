//! The database's time jumps, and an operator decides what was set aside.

use chrono::TimeDelta;
use sexton_model::id::ExecutionId;
use sexton_store::catch_up::{self, HoldDecision};
use sexton_store::firing;
use sexton_store::operator::AuditContext;

use super::case::{ACTOR, Simulation};
use super::invariants::invariant;
use super::op::Cut;
use super::stop::Stop;

/// How far the time jumps: farther than any absence that is taken for one.
const CLOCK_JUMP: TimeDelta = TimeDelta::hours(30);

impl Simulation<'_> {
    /// Everybody's clock is the simulation's, which leases and queues depend on. So it stays, and what a
    /// planner last saw is moved to the other side of it.
    pub(super) async fn jump(&mut self, back: bool) -> Result<(), Stop> {
        let far = if back { CLOCK_JUMP } else { -CLOCK_JUMP };
        let done = sqlx::query("UPDATE sexton.planner_clock SET seen_at = $1")
            .bind(self.now + far)
            .execute(self.store.pool())
            .await?;
        self.jumps += done.rows_affected();
        Ok(())
    }

    /// Decides what was set aside. Afterwards nothing is, and no hold is left, unless the command died.
    pub(super) async fn decide(&mut self, discard: bool, cut: Cut) -> Result<(), Stop> {
        let store = self.store;
        let held = firing::list_held_runs(store, None, 1_000).await?;
        let one: Vec<String> = held.first().map(|run| run.job_name.clone()).into_iter().collect();
        if cut == Cut::Before || (cut == Cut::After && one.is_empty()) {
            return Ok(());
        }
        let verdict = if discard { HoldDecision::Discard } else { HoldDecision::Release };
        let names = (cut == Cut::After).then_some(&one[..]);
        let by = AuditContext { actor: "an operator", reason: None };
        let now = Some(self.now);
        self.writes();
        let fresh_id = || ExecutionId::new(self.fresh());
        let settled = catch_up::settle(store, (verdict, names), (by, ACTOR), fresh_id, now).await;
        let settled = settled.map_err(|error| Stop::broken(format!("held firings: {error}")))?;
        self.released += settled.jobs as u64;
        if cut == Cut::No {
            let left = firing::list_held_runs(store, None, 1).await?;
            invariant!(settled.ended && left.is_empty(), "what was set aside is left: {left:?}");
            invariant!(catch_up::find_hold(store).await?.is_none(), "the hold goes on");
        }
        Ok(())
    }
}
