//! Decides which foreign tasks become executions and which are parked.
//!
//! A message whose execution exists is handled as its ticket, whatever task types are offered now: it was
//! adopted before.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use sexton_broker::{Delivery, publications};
use sexton_model::foreign::{Admission, MAX_FOREIGN_JOBS, admit};
use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_model::pool::PoolName;
use sexton_model::ticket::ForeignTask;
use sexton_service::fault;
use sexton_store::StoreError;
use sexton_store::foreign::{self, Adopted, ClaimOutcome, FreshIds, claim};
use sexton_store::offers::{self, OfferedSchema};
use sexton_store::tickets::TraceOrigin;
use uuid::Uuid;

use super::super::Slot;
use super::super::delivery_state::{DeliveryState, Failure, WriteEnd};
use crate::attempt::publish;
use crate::context::Context;

/// What happens to a foreign message.
enum AdoptionDecision {
    Adopted(Adopted),
    Delayed(Duration),
    Parked(String),
}

impl Slot {
    /// Adopts a foreign task, or moves its message elsewhere.
    pub(in crate::slot) async fn adopt(
        &mut self,
        delivery: Delivery,
        task: ForeignTask,
        mut delivery_state: DeliveryState,
    ) {
        // Retries use the same ids, so that they find a claim whose answer was lost.
        let ids = FreshIds {
            job: JobId::new(Uuid::now_v7()),
            execution: ExecutionId::new(Uuid::now_v7()),
        };
        let delays = delivery.properties.delays.unwrap_or(0);
        let (context, pool) = (Arc::clone(&self.context), self.pool.clone());
        let take_over = || async {
            let deciding = decide(&context, &task, &pool, ids, delays);
            match context.gate.run_delivery_statement(deciding).await {
                Err(StoreError::Data(error)) => Ok(AdoptionDecision::Parked(refused(&error))),
                Err(error) => Err(Failure::of(&error, "a task could not be taken over yet")),
                Ok(decision) => Ok(decision),
            }
        };
        match self.write(delivery, &mut delivery_state, take_over).await {
            WriteEnd::Answered(delivery, AdoptionDecision::Adopted(adopted)) => {
                self.adopted(delivery, &task, adopted, delivery_state).await;
            }
            WriteEnd::Answered(delivery, AdoptionDecision::Delayed(delay)) => {
                let delay = fault::test_override(delay, "FOREIGN_DELAY_MS");
                let namespace = &context.namespace;
                let copy = publications::delay_unoffered_task(namespace, &pool, delay, &delivery);
                self.publish_copy(delivery, copy, None).await;
            }
            WriteEnd::Answered(delivery, AdoptionDecision::Parked(reason)) => {
                self.park(delivery, &reason).await;
            }
            WriteEnd::Refused(delivery, reason) => self.park(delivery, &refused(&reason)).await,
            WriteEnd::Released => {}
        }
    }

    async fn adopted(
        &mut self,
        delivery: Delivery,
        task: &ForeignTask,
        adopted: Adopted,
        delivery_state: DeliveryState,
    ) {
        fault::point("worker.adopted");
        if task.key.is_some() {
            // The message id is the key, so the message itself is the first ticket.
            return self
                .open(delivery, adopted.execution_id, AttemptNumber::FIRST, delivery_state)
                .await;
        }
        if let Some(mut unpublished) = adopted.unpublished {
            let properties = &delivery.properties;
            unpublished.origin =
                TraceOrigin::new(properties.traceparent.clone(), properties.tracestate.clone());
            self.context.gate.record_open_written();
            publish(&self.context, &unpublished).await;
            fault::point("worker.adopted_published");
        }
        let _ = delivery.ack().await;
    }
}

async fn decide(
    context: &Context,
    task: &ForeignTask,
    pool: &PoolName,
    ids: FreshIds,
    delays: i64,
) -> Result<AdoptionDecision, StoreError> {
    let (store, task_type) = (&context.store, &task.task_type);
    let mut in_use = offers::list_recent_schemas(store, task_type, pool.as_str(), None).await?;
    if let Some(offered_here) = context.tasks.get(task_type).filter(|_| in_use.is_empty()) {
        // A restored backup has lost this worker's offers until the next publication of them.
        in_use.push(OfferedSchema {
            schema: offered_here.params_schema.clone(),
            workers: Vec::new(),
        });
    }
    let instead = match admit(!in_use.is_empty(), context.foreign_types.matches(task_type), delays)
    {
        Admission::Delay(delay) => Some(AdoptionDecision::Delayed(delay)),
        Admission::Park => Some(AdoptionDecision::Parked(not_offered(task_type, pool))),
        Admission::Adopt => context
            .schema_cache
            .mismatches(&task.params, &in_use)
            .map(|problems| AdoptionDecision::Parked(mismatching(task_type, &problems))),
    };
    if let Some(fate) = instead {
        let known = foreign::find(store, task).await?;
        let adopted =
            |execution_id| AdoptionDecision::Adopted(Adopted { execution_id, unpublished: None });
        return Ok(known.map_or(fate, adopted));
    }
    Ok(match claim(store, task, pool, ids, &context.writer.actor, None).await? {
        ClaimOutcome::Adopted(adopted) => AdoptionDecision::Adopted(adopted),
        ClaimOutcome::NoRoom => AdoptionDecision::Parked(no_room(task_type)),
    })
}

fn refused(error: &dyn Display) -> String {
    format!("the database refuses this task: {error}")
}

fn not_offered(task_type: &str, pool: &PoolName) -> String {
    format!(
        "no worker of pool {pool} offers the task type {task_type}: start one that has it in its catalogue, or \
         list it in WORKER_FOREIGN_TYPES, then move the message back to its queue, or discard it"
    )
}

fn mismatching(task_type: &str, problems: &str) -> String {
    format!(
        "the params do not fit the params_schema of {task_type}; publish it again, corrected: {problems}"
    )
}

fn no_room(task_type: &str) -> String {
    format!(
        "there are {MAX_FOREIGN_JOBS} jobs of tasks that other programs publish, and none for the task type \
         {task_type}: delete those that are not wanted (`sexton jobs delete foreign.…`), then move the message \
         back to its queue, or discard it"
    )
}
