//! The bulks: carries out what operators asked for of many executions at once.
//!
//! Each round gives every living bulk one portion: of items that are still to be selected, or of executions
//! that are requeued, discarded or restored. The rows of a portion, its audit and its counts are one
//! transaction; what is requeued is published here, within the head start that its rows give, and then
//! marked, so that the next portion begins when the broker has taken this one: a bulk is never farther ahead
//! of the broker than one portion, however large it is. While the broker is away nothing is requeued.
//!
//! **Crashes.** Before the commit: the portion is still to be done, by any scheduler. After it: rows that owe
//! their ticket, for any relay; the next portion, for any scheduler.

use std::sync::Arc;
use std::time::Duration;

use sexton_service::fault;
use sexton_store::answer::within;
use sexton_store::bulk::{self, Asking, Portion};
use sexton_store::{Now, Store};
use uuid::Uuid;

use crate::outbox::Outbox;
use crate::step::{ANSWER, Pause, Step, StepError};

/// Items that are selected at once.
const SELECTED: i64 = 2_000;
/// While no bulk is alive. News comes in between.
const POLL: Duration = Duration::from_secs(5);

/// The loop.
#[derive(Debug)]
pub struct Bulks {
    store: Store,
    outbox: Arc<Outbox>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Bulks that were alive.
    pub alive: usize,
    /// Items that were selected.
    pub selected: usize,
    /// Items that were done.
    pub done: usize,
    /// Items that could not be.
    pub refused: usize,
    /// Tickets that are in their queue now.
    pub published: usize,
    /// How long the loop rests.
    pub rest: Duration,
}

impl Bulks {
    /// Publishes through `outbox` what it requeues.
    pub const fn new(store: Store, outbox: Arc<Outbox>) -> Self {
        Self { store, outbox }
    }

    /// One portion of one bulk.
    async fn portion(&self, id: i64, now: Now, round: &mut Carried) -> Result<(), StepError> {
        let preparing = bulk::prepare(&self.store, id, SELECTED, now);
        if let Some(prepared) = within(ANSWER, preparing).await? {
            if prepared.selected > 0 {
                fault::point("scheduler.bulk_prepared");
            }
            round.selected += prepared.selected;
            round.rest = Duration::ZERO;
            return Ok(());
        }
        if !self.outbox.is_open() {
            // What could not be published would be a flood later. The link says itself that it is away.
            return Ok(());
        }
        let asking = bulk::asking(&self.store, id, Uuid::now_v7, now);
        if let Some(asking) = within(ANSWER, asking).await? {
            tell_asked(id, asking);
        }
        let Some(portion) = within(ANSWER, bulk::carry(&self.store, id, now)).await? else {
            return Ok(());
        };
        tell(id, &portion);
        if portion.done > 0 {
            fault::point("scheduler.bulk_carried");
        }
        let sent = self.outbox.send(&portion.tickets, now).await;
        if !sent.published.is_empty() {
            fault::point("scheduler.bulk_published");
        }
        // What was refused is the relay's, which lets it wait.
        self.outbox.mark(&sent.published, now).await?;
        round.done += portion.done;
        round.refused += portion.refused;
        round.published += sent.published.len();
        round.rest = round.rest.min(portion.wait);
        Ok(())
    }
}

fn tell(id: i64, portion: &Portion) {
    if let Some(why) = &portion.paused {
        tracing::warn!(bulk.id = id, "bulk {id} is paused: {why}");
    }
    if portion.over {
        tracing::info!(bulk.id = id, "bulk {id} is done");
    }
}

fn tell_asked(id: i64, asking: Asking) {
    if asking.unknown > 0 {
        tracing::warn!(
            bulk.id = id,
            "bulk {id} leaves {} executions failed: their verify task gave no answer",
            asking.unknown
        );
    }
}

impl Step for Bulks {
    const NAME: &'static str = "bulks";
    const LIMIT: Duration = Duration::from_mins(5);
    type Report = Carried;

    async fn run_once(&self, now: Now) -> Result<Carried, StepError> {
        let alive = within(ANSWER, bulk::alive(&self.store)).await?;
        let rest = POLL;
        let mut round =
            Carried { alive: alive.len(), selected: 0, done: 0, refused: 0, published: 0, rest };
        for id in alive {
            self.portion(id, now, &mut round).await?;
        }
        Ok(round)
    }

    fn pause(&self, round: &Carried) -> Pause {
        Pause::AtMost(round.rest)
    }
}
