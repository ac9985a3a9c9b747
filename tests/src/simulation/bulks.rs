//! Bulks: operators request them, schedulers execute them batch by batch, and questions run and answer.
//!
//! As in `scheduler/src/bulks.rs`, but each of its three steps is an operation, at any time and of
//! any bulk, also of one that was alive when a scheduler listed it and no longer is. The rows
//! before and after are checked without the code under test.

mod canary;
mod drain;
mod invariants;
mod ledger;
mod rows;

use chrono::TimeDelta;
use serde_json::json;
use sexton_model::bulk::{BulkKind, BulkState};
use sexton_model::failures::FailureFilter;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_model::verify_task::VerifyAnswer;
use sexton_store::bulk::{self, BulkSelector as Whom, ControlError, NewBulk};
use sexton_store::edits::{self, AfterEdit, Edit};

use super::broker::pick;
use super::case::Simulation;
use super::environment::BY;
use super::invariants::invariant;
use super::op::{BulkAction, BulkMode, BulkTarget, Cut, Op, ScriptedAnswer};
use super::rows::Row;
use super::stop::Stop;

pub(super) use ledger::{BulkLedger, EXPECTED_EVENTS};
use rows::Bulk;
pub(super) use rows::{Bulks, read};

/// How many items are selected at once: few, so that other operations come between.
const MAX_SELECTED_ITEMS: i64 = 2;
/// The most executions that an operator names.
const MAX_NAMED_EXECUTIONS: usize = 3;
/// The rate of a slow bulk.
pub(super) const BULK_RATE: &str = "6/m";
/// The same rate as a time between two items.
pub(super) const BULK_INTERVAL: TimeDelta = TimeDelta::seconds(10);

impl Simulation<'_> {
    /// Performs an operation on bulks.
    pub(super) async fn apply_bulk_op(&mut self, op: Op) -> Result<(), Stop> {
        match op {
            Op::Bulk { action, target, mode } => self.ask_for(action, target, mode).await,
            Op::Prepare { bulk, cut } if cut != Cut::Before => self.prepare(bulk).await,
            Op::Question { bulk, cut } if cut != Cut::Before => self.question(bulk).await,
            Op::Carry { bulk, cut } if cut != Cut::Before => self.carry(bulk, cut).await,
            Op::StopBulk { bulk } => self.stop_bulk(bulk).await,
            Op::ResumeBulk { bulk } => self.resume_bulk(bulk).await,
            Op::Say { bulk, item, reply } => self.say(bulk, item, reply).await,
            Op::Edit { row, requeue } => self.edit(row, requeue).await,
            _ => Ok(()),
        }
    }

    /// One of the bulks that satisfy `such`, counted from the newest.
    fn bulk(&self, index: u8, such: impl Fn(&Bulk) -> bool) -> Option<i64> {
        let such = self.bulks.values().rev().filter(|bulk| such(bulk));
        let ids: Vec<i64> = such.map(|bulk| bulk.id).collect();
        pick(index, ids.len()).map(|index| ids[index])
    }

    async fn ask_for(
        &mut self,
        action: BulkAction,
        target: BulkTarget,
        mode: BulkMode,
    ) -> Result<(), Stop> {
        let kind = match action {
            BulkAction::Requeue => BulkKind::Requeue,
            BulkAction::Discard => BulkKind::Discard,
            BulkAction::Restore => BulkKind::Restore,
        };
        let filter = self.filter(kind, target).await?;
        let such =
            self.rows.values().filter(|row| kind.acts_on(row.state)).take(MAX_NAMED_EXECUTIONS);
        let named: Vec<(ExecutionId, AttemptNumber)> =
            such.map(|row| (row.id, row.attempt)).collect();
        let selection = match target {
            BulkTarget::Before => match self.bulks.keys().last() {
                Some(last) => Whom::Bulk(*last),
                None => return Ok(()),
            },
            BulkTarget::Named if named.is_empty() => return Ok(()),
            BulkTarget::Named => Whom::Ids(&named),
            BulkTarget::All | BulkTarget::Group => Whom::Filter(&filter),
        };
        // Only a requeue verifies first, and only running executions show a canary's end.
        let mode = if action == BulkAction::Requeue { mode } else { BulkMode::Plain };
        let rate =
            matches!(mode, BulkMode::Paced | BulkMode::VerifiedSlowly).then(|| BULK_RATE.parse());
        let new = NewBulk {
            kind,
            selector: selection.clone(),
            previewed_at: self.now,
            rate: rate.transpose().unwrap_or_default(),
            canary: match mode {
                BulkMode::Canary => Some(1),
                BulkMode::VerifiedSlowly => Some(2),
                _ => None,
            },
            pool: None,
            verify: match mode {
                BulkMode::Verified | BulkMode::VerifiedSlowly => Some("task"),
                BulkMode::Commanded => Some("command"),
                _ => None,
            },
        };
        let id = bulk::create(self.writes(), &new, BY).await?;
        match target {
            BulkTarget::Before => self.ledger.bulks.comes("a bulk of what another has done"),
            BulkTarget::Named => self.ledger.bulks.comes("a bulk of those that somebody names"),
            BulkTarget::Group => self.ledger.bulks.comes("a bulk of a group"),
            BulkTarget::All => {}
        }
        self.ledger.bulks.begins(
            id,
            target == BulkTarget::All,
            matches!(selection, Whom::Filter(_)),
        );
        Ok(())
    }

    async fn filter(&self, kind: BulkKind, target: BulkTarget) -> Result<serde_json::Value, Stop> {
        let discarded = kind == BulkKind::Restore;
        let mut filter = json!(FailureFilter { discarded, ..FailureFilter::default() });
        if target == BulkTarget::Group {
            let first: Option<Option<String>> = sqlx::query_scalar(
                "SELECT fingerprint FROM sexton.failures WHERE discarded = $1
                 ORDER BY failed_at, execution_id LIMIT 1",
            )
            .bind(discarded)
            .fetch_optional(self.store.pool())
            .await?;
            if let Some(Some(fingerprint)) = first {
                filter["fingerprint"] = json!(fingerprint);
            }
        }
        Ok(filter)
    }

    async fn prepare(&mut self, index: u8) -> Result<(), Stop> {
        let Some(id) = self.bulk(index, |_| true) else { return Ok(()) };
        self.notes.bulk = Some(id);
        bulk::prepare(self.writes(), id, MAX_SELECTED_ITEMS, Some(self.now)).await?;
        Ok(())
    }

    async fn question(&mut self, index: u8) -> Result<(), Stop> {
        let Some(id) = self.bulk(index, |_| true) else { return Ok(()) };
        self.notes.bulk = Some(id);
        let (store, now) = (self.writes(), Some(self.now));
        let fresh = || self.fresh();
        let asking = bulk::process_questions(store, id, fresh, now).await?;
        let Some(asking) = asking else { return Ok(()) };
        if asking.resolved > 0 {
            self.ledger.bulks.comes("an answer by which an execution is resolved");
        }
        if asking.unknown > 0 {
            self.ledger.bulks.comes("a question without an answer");
        }
        Ok(())
    }

    async fn carry(&mut self, index: u8, cut: Cut) -> Result<(), Stop> {
        let Some(id) = self.bulk(index, |_| true) else { return Ok(()) };
        self.notes.bulk = Some(id);
        let batch = bulk::execute_batch(self.writes(), id, Some(self.now)).await?;
        // A running canary has locked the bulk, and has nothing to commit.
        self.rolled_back().await?;
        let Some(batch) = batch else { return Ok(()) };
        invariant!(batch.busy == 0, "a batch finds a lock that nobody has");
        self.ledger.bulks.carried(id, self.now);
        if batch.paused.is_some() {
            self.ledger.bulks.comes("a canary that pauses its bulk");
        }
        if batch.refused > 0 {
            self.ledger.bulks.comes("an item that is refused");
        }
        if cut == Cut::No {
            self.schedulers
                .outbox
                .extend(batch.tickets.into_iter().map(|unpublished| (unpublished, false)));
        }
        Ok(())
    }

    async fn stop_bulk(&mut self, index: u8) -> Result<(), Stop> {
        let such = |bulk: &Bulk| bulk.state.stopped().is_some();
        let Some(id) = self.bulk(index, such) else { return Ok(()) };
        steered(bulk::stop(self.writes(), id, BY).await)?;
        self.stopped_now(id).await
    }

    /// Operators' statements use the server's clock, which is years away from the simulation's.
    async fn stopped_now(&mut self, id: i64) -> Result<(), Stop> {
        self.notes.steered = Some(id);
        self.ledger.bulks.steered(id);
        sqlx::query("UPDATE sexton.bulks SET ended_at = $2 WHERE id = $1 AND ended_at IS NOT NULL")
            .bind(id)
            .bind(self.now)
            .execute(self.store.pool())
            .await?;
        Ok(())
    }

    async fn resume_bulk(&mut self, index: u8) -> Result<(), Stop> {
        let such = |bulk: &Bulk| matches!(bulk.state, BulkState::Stopped | BulkState::Paused);
        let Some(id) = self.bulk(index, such) else { return Ok(()) };
        steered(bulk::resume(self.writes(), id, BY).await)?;
        self.notes.steered = Some(id);
        self.ledger.bulks.steered(id);
        Ok(())
    }

    /// Answers for an unanswered item, with the params that the command has just read.
    async fn say(&mut self, index: u8, item: u8, reply: ScriptedAnswer) -> Result<(), Stop> {
        let such = |bulk: &Bulk| bulk.asks("command") && bulk.unasked().next().is_some();
        let Some(id) = self.bulk(index, such) else { return Ok(()) };
        let open: Vec<(i64, ExecutionId)> = self.bulks[&id].unasked().collect();
        let Some((ordinal, execution)) = pick(item, open.len()).map(|index| open[index]) else {
            return Ok(());
        };
        let answer = match reply {
            ScriptedAnswer::Yes => VerifyAnswer::Happened,
            ScriptedAnswer::No => VerifyAnswer::NotYet,
            ScriptedAnswer::Neither => VerifyAnswer::Unknown("it says nothing".to_owned()),
        };
        let params = self.rows.get(&execution).map_or("{}", |row| row.params.as_str());
        let params = serde_json::from_str(params).unwrap_or_default();
        let now = Some(self.now);
        let counts =
            bulk::record_answer(self.writes(), id, ordinal, &answer, &params, BY, now).await?;
        if counts {
            self.notes.bulk = Some(id);
            self.ledger.bulks.commanded(id, ordinal, reply);
        }
        Ok(())
    }

    async fn edit(&mut self, index: u8, requeue: bool) -> Result<(), Stop> {
        let failed = |row: &&Row| row.state == State::Failed && row.asks_about.is_none();
        let failed: Vec<&Row> = self.rows.values().filter(failed).collect();
        let Some(row) = pick(index, failed.len()).map(|index| failed[index].clone()) else {
            return Ok(());
        };
        let seen = serde_json::from_str(&row.params).unwrap_or_default();
        let params = json!({"a": self.applied()});
        let then = if requeue { AfterEdit::Requeue { unverified: true } } else { AfterEdit::Stay };
        let edit = Edit { seen: &seen, params: &params, pool: None, then };
        self.notes.person = requeue.then_some((row.id, sexton_model::state::Cause::Requeue));
        edits::edit(self.writes(), row.id, row.attempt, edit, None, BY, Some(self.now)).await?;
        self.ledger.record_action(row.id);
        if requeue {
            self.ledger.record_action(row.id);
        }
        Ok(())
    }

    /// Runs the three steps of each living bulk, in a scheduler's order.
    pub(super) async fn carry_on(&mut self) -> Result<(), Stop> {
        if self.bulks.is_empty() {
            return Ok(());
        }
        for id in bulk::list_active(self.store, 0).await? {
            let place = self.bulks.keys().rev().position(|known| *known == id);
            let Some(bulk) = place.map(|place| place as u8) else { continue };
            let cut = Cut::No;
            for op in
                [Op::Prepare { bulk, cut }, Op::Question { bulk, cut }, Op::Carry { bulk, cut }]
            {
                self.apply(op).await?;
            }
        }
        Ok(())
    }
}

/// Fails if another operation was faster.
fn steered(done: Result<(), ControlError>) -> Result<(), Stop> {
    match done {
        Err(ControlError::Store(error)) => Err(error.into()),
        Err(error) => Err(Stop::broken(format!("a bulk is not steered: {error}"))),
        Ok(()) => Ok(()),
    }
}
