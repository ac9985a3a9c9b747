//! What a worker says about itself, and what it hears: heartbeats, its seat, wake-ups.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sexton_broker::Link;
use sexton_model::retry::{AttemptEnd, Decision, LOST, decide};
use sexton_service::fault;
use sexton_service::health::Readiness;
use sexton_store::instances::{InstanceRegistration, heartbeat, mark_stopped, predecessors};
use sexton_store::lost_attempts::{self, LossGrounds, LostAttempt};
use sexton_store::notifications::{Listener, Notification};
use sexton_store::offers::publish;
use sexton_store::timeout::with_timeout;
use sexton_store::{StoreError, incidents};

use crate::context::Context;
use crate::seat::Seat;

/// Between two heartbeats.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(5);
/// In so many heartbeats the worker says again what it offers: a restored backup has forgotten it.
const PUBLISH_EVERY: u32 = 60;
/// Between two looks at what changes rarely: the readiness, a seat that somebody sits in.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// For connecting to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(15);
/// After so long without news the connection is made anew: the other side may be gone without a
/// word.
const LISTEN_SILENCE: Duration = Duration::from_mins(5);
/// Between two tries to listen.
const LISTEN_EVERY: Duration = Duration::from_secs(2);
/// For writing down what happened to queues.
const RECORDING: Duration = Duration::from_secs(10);
/// Attempts of a predecessor that are settled by one statement.
const BATCH: i64 = 500;

/// A worker's sign of life.
pub(crate) struct Pulse {
    pub(crate) context: Arc<Context>,
    pub(crate) who: InstanceRegistration,
    /// Its task types, with what their params must hold.
    pub(crate) offers: Vec<(String, Option<Value>)>,
    pub(crate) beats: u32,
    pub(crate) seat: Option<Seat>,
    pub(crate) readiness: Readiness,
    /// What they saw happen to queues is written down.
    pub(crate) links: [Link; 2],
    /// The seat is taken, and what its predecessors left open is not settled yet.
    pub(crate) inherits: bool,
}

impl Pulse {
    /// Takes the seat if it is free, introduces the worker, and settles what a predecessor in the
    /// seat left open. To be called, and called again if it fails, before the first ticket is taken:
    /// a successor can only settle what was opened under a recorded seat.
    pub(crate) async fn introduce(&mut self) -> Result<(), StoreError> {
        if self.who.seat.is_none() {
            self.try_seat();
        }
        let context = Arc::clone(&self.context);
        let ready = self.readiness.is_ready();
        context.gate.ask(heartbeat(&context.store, &self.who, ready, None)).await?;
        if self.beats.is_multiple_of(PUBLISH_EVERY) {
            context.gate.ask(publish(&context.store, self.who.id, &self.offers)).await?;
        }
        self.beats = self.beats.wrapping_add(1);
        self.tell_incidents().await;
        if self.inherits {
            context.gate.ask(self.succeed()).await?;
            self.inherits = false;
        }
        Ok(())
    }

    /// For people: if it cannot be written, it is tried again, and forgotten with the process. The gate does not learn of
    /// it: tasks need nothing of this table.
    async fn tell_incidents(&self) {
        for link in &self.links {
            let seen = link.take_incidents();
            let recording = incidents::record(&self.context.store, &seen, None);
            if let Err(error) = with_timeout(RECORDING, recording).await {
                tracing::debug!(%error, "what happened to queues could not be written down yet");
                for one in seen {
                    link.note_incident(&one.queue, one.kind, one.messages);
                }
            }
        }
    }

    /// Beats until the worker has ended its slots, then says goodbye.
    pub(crate) async fn beat(mut self, slots_ended: impl Future<Output = ()>) {
        let mut slots_ended = std::pin::pin!(slots_ended);
        let mut beats = tokio::time::interval(HEARTBEAT_EVERY);
        let mut looks = tokio::time::interval(LOOK_EVERY);
        let mut told_ready = false;
        loop {
            let beat = tokio::select! {
                () = &mut slots_ended => break,
                _ = beats.tick() => true,
                _ = looks.tick() => false,
            };
            let ready = self.readiness.is_ready();
            let seated = self.who.seat.is_none() && self.try_seat();
            if beat || seated || ready != told_ready {
                told_ready = ready;
                // The gate is told of a failure; the next beat tries again.
                let _ = self.introduce().await;
            }
        }
        // If it cannot be said, the heartbeat's age says it.
        let goodbye = mark_stopped(&self.context.store, self.who.id, None);
        let _ = tokio::time::timeout(Duration::from_secs(2), goodbye).await;
    }

    fn try_seat(&mut self) -> bool {
        let Some(seat) = &self.seat else { return false };
        match seat.take() {
            Ok(true) => {
                self.who.seat = Some(seat.id());
                self.inherits = true;
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!("runs without a seat: the lock file cannot be locked: {error}");
                self.seat = None;
                false
            }
        }
    }

    /// Ends the attempts of dead predecessors as lost.
    async fn succeed(&self) -> Result<(), StoreError> {
        let Some(seat) = self.who.seat else { return Ok(()) };
        let (store, policy) = (&self.context.store, &self.context.retry);
        let dead = predecessors(store, seat, self.who.id).await?;
        if dead.is_empty() {
            return Ok(());
        }
        let which = LossGrounds::OfWorkers(&dead);
        loop {
            let found = lost_attempts::find(store, &which, BATCH).await?;
            let lost: Vec<_> = found
                .into_iter()
                .map(|one| {
                    let policy = policy.with(&one.retry);
                    let verdict =
                        decide(AttemptEnd::Lost, LOST, one.used, &policy, Context::draw());
                    (one, verdict)
                })
                .collect();
            if !lost.is_empty() {
                fault::point("worker.seated");
            }
            let settled = lost_attempts::settle(store, &which, &lost, None).await?;
            if !settled.is_empty() {
                fault::point("worker.inherited");
            }
            for id in &settled {
                tracing::warn!(execution.id = %id, "the attempt of a dead predecessor is lost");
                let failed = |(one, verdict): &(LostAttempt, Decision)| {
                    one.execution_id == *id && matches!(verdict, Decision::Fail { .. })
                };
                if lost.iter().any(failed) {
                    self.context.notices.parked(*id);
                }
            }
            // What is locked by somebody else is the rescuer's.
            if settled.is_empty() {
                break;
            }
        }
        for one in dead {
            mark_stopped(store, one, None).await?;
        }
        Ok(())
    }
}

/// Listens for cancels, so that running attempts renew at once; and makes them renew whenever it begins
/// to listen, for what was told while nobody listened. One that is missed in another way is noticed by
/// the next renewal. So an outage only costs time, and is told by those who need the database.
pub(crate) async fn listen(context: Arc<Context>) {
    loop {
        context.gate.answering().await;
        let connecting = with_timeout(LISTEN_LIMIT, Listener::connect(&context.store));
        if let Ok(mut listener) = connecting.await {
            context.cancels.send_modify(|count| *count += 1);
            while let Ok(wake) = with_timeout(LISTEN_SILENCE, listener.next()).await {
                if wake.is_none_or(|wake| wake == Notification::Cancel) {
                    context.cancels.send_modify(|count| *count += 1);
                }
            }
        }
        tokio::time::sleep(LISTEN_EVERY).await;
    }
}
