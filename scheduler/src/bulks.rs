//! Carries out bulks: the actions that operators requested on many executions.
//!
//! Each round gives every active bulk one batch: of items to select, or of executions to requeue, discard or
//! restore. The rows of a batch, its audit and its counts are one transaction; this loop publishes the requeued
//! tickets within the head start that their rows give, and then marks them, so that the next batch begins when
//! the broker has taken this one: a bulk is never farther ahead of the broker than one batch, however large it
//! is. While the broker is down nothing is requeued, and when it refuses tickets, the round ends and the loop
//! pauses.
//!
//! **No bulk delays another.** A bulk that cannot be read, whose query takes the database too long, or whose
//! values the database refuses, is stopped with that reason. After any other early end of a round, and when
//! there are more bulks than a round handles, the next round begins with the bulk after the last one handled.
//!
//! **Crashes.** Before the commit: any scheduler repeats the batch. After it: any relay publishes the rows'
//! unpublished tickets, and any scheduler does the next batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use sexton_service::fault;
use sexton_service::metrics::table;
use sexton_store::bulk::{self, ControlError, ExecutedBatch, MAX_ACTIVE_BULKS, QuestionRound};
use sexton_store::operator::AuditContext;
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError};
use uuid::Uuid;

use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};
use crate::publish::outbox::Outbox;

/// Items that are selected at once.
const MAX_SELECTED_ITEMS: i64 = 2_000;
/// Time limit of the selection: it has many statements, each of which the server ends at its own, shorter
/// limit.
const SELECT_TIMEOUT: Duration = Duration::from_secs(100);
/// Pause while there are more bulks than a round handles.
const MORE_BULKS_PAUSE: Duration = Duration::from_secs(1);
/// Pause while no bulk is active. Notifications shorten it.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Pause when the broker refused tickets; nothing shortens it.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// The actor that stops a bulk that cannot be carried out.
const SYSTEM_ACTOR: &str = "sexton";

/// The loop that carries out bulks.
#[derive(Debug)]
pub struct Bulks {
    store: Store,
    outbox: Arc<Outbox>,
    /// The bulk at which the previous round ended early; 0: it was complete.
    resume_after: AtomicI64,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulksReport {
    /// Active bulks.
    pub alive: usize,
    /// Items that were selected.
    pub selected: usize,
    /// Items that succeeded.
    pub done: usize,
    /// Items that were refused.
    pub refused: usize,
    /// Tickets that are in their queue now.
    pub published: usize,
    /// Tickets that the broker refused, or of which nothing is known, or whose queue has recently refused
    /// others.
    pub unpublished: usize,
    /// How long the loop pauses.
    pub next_round_in: Duration,
}

impl Bulks {
    /// Creates the loop; `outbox` publishes the requeued tickets.
    pub const fn new(store: Store, outbox: Arc<Outbox>) -> Self {
        Self { store, outbox, resume_after: AtomicI64::new(0) }
    }

    /// Carries out one batch of one bulk.
    async fn execute_batch(
        &self,
        id: i64,
        now: Now,
        round: &mut BulksReport,
    ) -> Result<(), LoopError> {
        let preparing =
            with_timeout(SELECT_TIMEOUT, bulk::prepare(&self.store, id, MAX_SELECTED_ITEMS, now))
                .await;
        if let Some(prepared) = self.stop_on_permanent_error(id, preparing).await? {
            if prepared.selected > 0 {
                fault::point("scheduler.bulk_prepared");
            }
            round.selected += prepared.selected;
            round.next_round_in = Duration::ZERO;
            return Ok(());
        }
        if !self.outbox.is_open() {
            // Requeueing now would publish a flood of tickets after the outage. The link logs that the broker is
            // down.
            return Ok(());
        }
        let questions = with_timeout(
            QUERY_TIMEOUT,
            bulk::process_questions(&self.store, id, Uuid::now_v7, now),
        )
        .await;
        if let Some(questions) = self.stop_on_permanent_error(id, questions).await? {
            log_unanswered(id, questions);
        }
        let outcome = with_timeout(QUERY_TIMEOUT, bulk::execute_batch(&self.store, id, now)).await;
        let Some(batch) = self.stop_on_permanent_error(id, outcome).await? else {
            return Ok(());
        };
        log_batch(id, &batch);
        if batch.done > 0 {
            fault::point("scheduler.bulk_executed");
        }
        table::BULK_ITEMS.add(["done"], batch.done as u64);
        table::BULK_ITEMS.add(["refused"], batch.refused as u64);
        let sent = self.outbox.send_fresh(batch.tickets, Instant::now(), now).await;
        if !sent.published.is_empty() {
            fault::point("scheduler.bulk_published");
        }
        // The relay publishes refused tickets later, with a delay.
        self.outbox.mark(&sent.published, now).await?;
        round.unpublished +=
            sent.refused.len() + sent.too_large.len() + sent.unknown + sent.left_to_relay;
        round.done += batch.done;
        round.refused += batch.refused;
        round.published += sent.published.len();
        round.next_round_in = round.next_round_in.min(batch.wait);
        Ok(())
    }

    /// Stops a bulk after an error that any further try would repeat.
    async fn stop_on_permanent_error<T>(
        &self,
        id: i64,
        outcome: Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, LoopError> {
        let reason = match outcome {
            Err(
                error @ (StoreError::Inconsistent { .. }
                | StoreError::TooSlow(_)
                | StoreError::Data(_)),
            ) => error.to_string(),
            other => return Ok(other?),
        };
        let by = AuditContext { actor: SYSTEM_ACTOR, reason: Some(&reason) };
        let stopping = async {
            match bulk::abort(&self.store, id, by).await {
                Ok(()) => Ok(true),
                // An operator or another scheduler has ended it first.
                Err(ControlError::Missing(_) | ControlError::WrongState(_)) => Ok(false),
                Err(ControlError::Store(error)) => Err(error),
            }
        };
        if with_timeout(QUERY_TIMEOUT, stopping).await? {
            tracing::error!(
                bulk.id = id,
                "bulk {id} cannot be carried out and is stopped: {reason}"
            );
        }
        Ok(None)
    }
}

fn log_batch(id: i64, batch: &ExecutedBatch) {
    if let Some(reason) = &batch.paused {
        tracing::warn!(bulk.id = id, "bulk {id} is paused: {reason}");
    }
    if batch.over {
        tracing::info!(bulk.id = id, "bulk {id} is done");
    }
}

fn log_unanswered(id: i64, round: QuestionRound) {
    if round.unknown > 0 {
        tracing::warn!(
            bulk.id = id,
            "bulk {id} leaves {} executions failed: their verify task gave no answer",
            round.unknown
        );
    }
}

impl BackgroundLoop for Bulks {
    const NAME: &'static str = "bulks";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(5);
    type Report = BulksReport;

    async fn run_once(&self, now: Now) -> Result<BulksReport, LoopError> {
        let resume_after = self.resume_after.load(Ordering::Relaxed);
        let alive =
            with_timeout(QUERY_TIMEOUT, bulk::list_active(&self.store, resume_after)).await?;
        let mut round = BulksReport {
            alive: alive.len(),
            selected: 0,
            done: 0,
            refused: 0,
            published: 0,
            unpublished: 0,
            next_round_in: POLL_INTERVAL,
        };
        for id in alive {
            self.resume_after.store(id, Ordering::Relaxed);
            self.execute_batch(id, now, &mut round).await?;
            if round.unpublished > 0 {
                return Ok(round);
            }
        }
        if round.alive < MAX_ACTIVE_BULKS {
            self.resume_after.store(0, Ordering::Relaxed);
        } else {
            // There may be more, with which the next round begins.
            round.next_round_in = round.next_round_in.min(MORE_BULKS_PAUSE);
        }
        Ok(round)
    }

    fn pause(&self, round: &BulksReport) -> Pause {
        if round.unpublished > 0 {
            Pause::Exactly(REFUSED_PAUSE)
        } else {
            Pause::AtMost(round.next_round_in)
        }
    }
}
