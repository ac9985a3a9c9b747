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
use crate::instance_lock::InstanceLock;

/// Between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// In so many heartbeats the worker says again what it offers: a restored backup has forgotten it.
const PUBLISH_EVERY_BEATS: u32 = 60;
/// Between two looks at what changes rarely: the readiness, a seat that somebody sits in.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// For connecting to listen.
const LISTEN_CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// After so long without news the connection is made anew: the other side may be gone without a
/// word.
const LISTEN_IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// Between two tries to listen.
const LISTEN_RETRY_DELAY: Duration = Duration::from_secs(2);
/// For writing down what happened to queues.
const RECORD_TIMEOUT: Duration = Duration::from_secs(10);
/// Attempts of a predecessor that are settled by one statement.
const MAX_BATCH_ATTEMPTS: i64 = 500;

/// A worker's sign of life.
pub(crate) struct InstanceHeartbeat {
    pub(crate) context: Arc<Context>,
    pub(crate) registration: InstanceRegistration,
    /// Its task types, with what their params must hold.
    pub(crate) offers: Vec<(String, Option<Value>)>,
    pub(crate) beats: u32,
    pub(crate) instance_lock: Option<InstanceLock>,
    pub(crate) readiness: Readiness,
    /// What they saw happen to queues is written down.
    pub(crate) links: [Link; 2],
    /// The seat is taken, and what its predecessors left open is not settled yet.
    pub(crate) has_predecessors_to_settle: bool,
}

impl InstanceHeartbeat {
    /// Takes the seat if it is free, introduces the worker, and settles what a predecessor in the
    /// seat left open. To be called, and called again if it fails, before the first ticket is taken:
    /// a successor can only settle what was opened under a recorded seat.
    pub(crate) async fn introduce(&mut self) -> Result<(), StoreError> {
        if self.registration.instance_lock.is_none() {
            self.try_instance_lock();
        }
        let context = Arc::clone(&self.context);
        let ready = self.readiness.is_ready();
        context
            .gate
            .run_statement(heartbeat(&context.store, &self.registration, ready, None))
            .await?;
        if self.beats.is_multiple_of(PUBLISH_EVERY_BEATS) {
            context
                .gate
                .run_statement(publish(&context.store, self.registration.id, &self.offers))
                .await?;
        }
        self.beats = self.beats.wrapping_add(1);
        self.record_incidents().await;
        if self.has_predecessors_to_settle {
            context.gate.run_statement(self.settle_predecessors()).await?;
            self.has_predecessors_to_settle = false;
        }
        Ok(())
    }

    /// For people: if it cannot be written, it is tried again, and forgotten with the process. The gate does not learn of
    /// it: tasks need nothing of this table.
    async fn record_incidents(&self) {
        for link in &self.links {
            let seen = link.take_incidents();
            let recording = incidents::record(&self.context.store, &seen, None);
            if let Err(error) = with_timeout(RECORD_TIMEOUT, recording).await {
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
        let mut beats = tokio::time::interval(HEARTBEAT_INTERVAL);
        let mut checks = tokio::time::interval(CHECK_INTERVAL);
        let mut reported_ready = false;
        loop {
            let beat = tokio::select! {
                () = &mut slots_ended => break,
                _ = beats.tick() => true,
                _ = checks.tick() => false,
            };
            let ready = self.readiness.is_ready();
            let locked = self.registration.instance_lock.is_none() && self.try_instance_lock();
            if beat || locked || ready != reported_ready {
                reported_ready = ready;
                // The gate is told of a failure; the next beat tries again.
                let _ = self.introduce().await;
            }
        }
        // If it cannot be said, the heartbeat's age says it.
        let goodbye = mark_stopped(&self.context.store, self.registration.id, None);
        let _ = tokio::time::timeout(Duration::from_secs(2), goodbye).await;
    }

    fn try_instance_lock(&mut self) -> bool {
        let Some(lock) = &self.instance_lock else { return false };
        match lock.take() {
            Ok(true) => {
                self.registration.instance_lock = Some(lock.id());
                self.has_predecessors_to_settle = true;
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!("runs without a seat: the lock file cannot be locked: {error}");
                self.instance_lock = None;
                false
            }
        }
    }

    /// Ends the attempts of dead predecessors as lost.
    async fn settle_predecessors(&self) -> Result<(), StoreError> {
        let Some(instance_lock) = self.registration.instance_lock else { return Ok(()) };
        let (store, policy) = (&self.context.store, &self.context.retry);
        let dead = predecessors(store, instance_lock, self.registration.id).await?;
        if dead.is_empty() {
            return Ok(());
        }
        let which = LossGrounds::OfWorkers(&dead);
        loop {
            let found = lost_attempts::find(store, &which, MAX_BATCH_ATTEMPTS).await?;
            let lost: Vec<_> = found
                .into_iter()
                .map(|one| {
                    let policy = policy.with(&one.retry);
                    let verdict = decide(
                        AttemptEnd::Lost,
                        LOST,
                        one.used,
                        &policy,
                        Context::random_fraction(),
                    );
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
                    self.context.parked_log.record(*id);
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
        context.gate.wait_for_writes().await;
        let connecting = with_timeout(LISTEN_CONNECT_TIMEOUT, Listener::connect(&context.store));
        if let Ok(mut listener) = connecting.await {
            context.cancels.send_modify(|count| *count += 1);
            while let Ok(wake) = with_timeout(LISTEN_IDLE_TIMEOUT, listener.next()).await {
                if wake.is_none_or(|wake| wake == Notification::Cancel) {
                    context.cancels.send_modify(|count| *count += 1);
                }
            }
        }
        tokio::time::sleep(LISTEN_RETRY_DELAY).await;
    }
}
