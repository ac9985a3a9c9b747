//! Sends a worker's heartbeats, holds its instance lock, and listens for cancels.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sexton_engine::heartbeat::{self, HEARTBEAT_INTERVAL, Heartbeat};
use sexton_engine::jitter::jittered;
use sexton_engine::lost_attempts;
use sexton_engine::notifications::{self, RECONNECT_DELAY};
use sexton_model::retry::Decision;
use sexton_service::fault;
use sexton_store::StoreError;
use sexton_store::instances::{mark_stopped, predecessors};
use sexton_store::lost_attempts::LossGrounds;
use sexton_store::notifications::Notification;
use sexton_store::offers::publish;

use crate::context::Context;
use crate::instance_lock::InstanceLock;

/// Heartbeats between two publications of the worker's task types: a restored backup has lost them.
const PUBLISH_EVERY_BEATS: u32 = 60;
/// Interval of the checks of what changes rarely: the readiness, and an instance lock that another process
/// holds.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of the statement that marks the worker as stopped.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends the heartbeats of a worker.
pub(crate) struct InstanceHeartbeat {
    pub(crate) context: Arc<Context>,
    pub(crate) heartbeat: Heartbeat,
    /// The task types that it runs, with the schemas of their params.
    pub(crate) offers: Vec<(String, Option<Value>)>,
    pub(crate) beats: u32,
    pub(crate) instance_lock: Option<InstanceLock>,
    /// The worker holds the instance lock, and has not yet settled what its predecessors left open.
    pub(crate) has_predecessors_to_settle: bool,
}

impl InstanceHeartbeat {
    /// Takes the instance lock if it is free, registers the worker, and settles what a predecessor with the
    /// same lock left open. Must succeed before the worker takes its first ticket, and may be repeated after a
    /// failure: a successor can only settle attempts that were opened under a recorded lock.
    pub(crate) async fn introduce(&mut self) -> Result<(), StoreError> {
        if self.heartbeat.registration.instance_lock.is_none() {
            self.try_instance_lock();
        }
        let context = Arc::clone(&self.context);
        context.gate.run_statement(self.heartbeat.beat(None)).await?;
        if self.beats.is_multiple_of(PUBLISH_EVERY_BEATS) {
            let publishing = publish(&context.store, context.writer.worker, &self.offers);
            context.gate.run_statement(publishing).await?;
        }
        self.beats = self.beats.wrapping_add(1);
        // A failure is not reported to the gate: tasks do not need this table.
        self.heartbeat.record_queue_incidents(None).await;
        if self.has_predecessors_to_settle {
            context.gate.run_statement(self.settle_predecessors()).await?;
            self.has_predecessors_to_settle = false;
        }
        Ok(())
    }

    /// Sends heartbeats until the worker has ended its slots, then deregisters it.
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
            let ready = self.heartbeat.is_ready();
            let locked =
                self.heartbeat.registration.instance_lock.is_none() && self.try_instance_lock();
            if beat || locked || ready != reported_ready {
                reported_ready = ready;
                // The statement reports a failure to the gate; the next heartbeat retries.
                let _ = self.introduce().await;
            }
        }
        let (store, registration) = (&self.context.store, &self.heartbeat.registration);
        heartbeat::mark_stopped(store, registration, GOODBYE_TIMEOUT).await;
    }

    fn try_instance_lock(&mut self) -> bool {
        let Some(lock) = &self.instance_lock else { return false };
        match lock.take() {
            Ok(true) => {
                self.heartbeat.registration.instance_lock = Some(lock.id());
                self.has_predecessors_to_settle = true;
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!(
                    "runs without an instance lock: the lock file cannot be locked: {error}"
                );
                self.instance_lock = None;
                false
            }
        }
    }

    /// Ends the attempts of dead predecessors as lost.
    async fn settle_predecessors(&self) -> Result<(), StoreError> {
        let Some(instance_lock) = self.heartbeat.registration.instance_lock else { return Ok(()) };
        let (store, defaults) = (&self.context.store, &self.context.retry);
        let dead = predecessors(store, instance_lock, self.context.writer.worker).await?;
        if dead.is_empty() {
            return Ok(());
        }
        let grounds = LossGrounds::OfWorkers(&dead);
        loop {
            let lost = lost_attempts::find(store, &grounds, defaults).await?;
            if !lost.is_empty() {
                fault::point("worker.instance_locked");
            }
            let ended = lost_attempts::settle(store, &grounds, lost, None).await?;
            if !ended.is_empty() {
                fault::point("worker.inherited");
            }
            for (lost, decision) in &ended {
                let id = lost.execution_id;
                tracing::warn!(execution.id = %id, "the attempt of a dead predecessor is lost");
                if matches!(decision, Decision::Fail { .. }) {
                    self.context.parked_log.record(id);
                }
            }
            // The rescuer ends attempts whose rows are locked now.
            if ended.is_empty() {
                break;
            }
        }
        for predecessor in dead {
            mark_stopped(store, predecessor, None).await?;
        }
        Ok(())
    }
}

/// Listens for cancels and makes all running attempts renew at each. Also makes them renew whenever the
/// listening (re)starts, because notifications may have been missed. A renewal notices any other missed cancel,
/// so an outage only costs time; the parts that need the database log it.
pub(crate) async fn listen(context: Arc<Context>) {
    loop {
        context.gate.wait_for_writes().await;
        let listening = notifications::listen(&context.store, |news| {
            if news.is_none_or(|news| news == Notification::Cancel) {
                context.cancels.send_modify(|count| *count += 1);
            }
        });
        if listening.await.is_err() {
            tokio::time::sleep(jittered(RECONNECT_DELAY)).await;
        }
    }
}
