//! What an execution waits for, or what became of it, whether a firing, a person or a program made it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::explain::{Pause, of_execution};
use sexton_store::executions::{self, Execution};
use sexton_store::flows::{self, FlowMember};
use sexton_store::ledger::{FiringExecution, find_backfill};
use sexton_store::{Store, StoreError, attempts, operator};
use uuid::Uuid;

use super::sentences::describe_execution;
use super::timeline::{Event, timeline};
use super::{ExecutionSummary, MAX_ATTEMPTS};
use crate::error::OperationError;
use crate::execution_ids;
use crate::flows::describe_wait;
use crate::text::instant;

/// An execution, explained.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedExecution {
    /// The job's name.
    pub job_name: String,
    /// Its execution key.
    pub execution_key: String,
    /// Its nominal time, or when it was made.
    pub scheduled_for: DateTime<Utc>,
    /// Its disposition, in a word.
    pub disposition: String,
    /// What it waits for, or what became of it, in a sentence.
    pub why: String,
    /// Its place in a flow.
    pub flow: Option<FlowPlace>,
    /// A summary of the row.
    #[serde(flatten)]
    pub execution: ExecutionSummary,
    /// Its events, oldest first.
    pub timeline: Vec<Event>,
}

/// The place of an execution in a flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FlowPlace {
    /// The flow's id.
    pub flow_id: Uuid,
    /// Its name.
    pub flow_name: String,
    /// The execution as a member.
    pub member: FlowMember,
}

/// Explains the execution whose id is `id`, or begins so. `now` is the database's clock.
///
/// # Errors
///
/// [`crate::error::NotFound::Execution`]; those of the database.
pub async fn explain_execution(
    store: &Store,
    id: &str,
    now: DateTime<Utc>,
) -> Result<ExplainedExecution, OperationError> {
    let id = execution_ids::resolve(store, id).await?;
    let execution = executions::find(store, id).await?.ok_or_else(|| execution_ids::missing(id))?;
    let attempts = attempts::list_by_execution(store, id, MAX_ATTEMPTS).await?;
    let actions = operator::list_by_execution(store, id).await?;
    let backfill = find_backfill(store, &execution).await?;
    let place = match execution.flow_id {
        Some(_) => find_place(store, id).await?,
        None => None,
    };
    Ok(explain(&execution, backfill, place, timeline(&execution, &attempts, &actions), now)?)
}

/// Reads the place of an execution in its flow, its depth not counted.
pub(crate) async fn find_place(store: &Store, id: Uuid) -> Result<Option<FlowPlace>, StoreError> {
    let place = flows::find_member(store, id).await?;
    Ok(place.map(|(flow, member)| FlowPlace { flow_id: flow.id, flow_name: flow.name, member }))
}

/// Explains an execution by what was read of it.
pub(crate) fn explain(
    execution: &Execution,
    backfill: Option<Pause>,
    flow: Option<FlowPlace>,
    timeline: Vec<Event>,
    now: DateTime<Utc>,
) -> Result<ExplainedExecution, StoreError> {
    let recorded = FiringExecution::of(execution, backfill)?;
    let disposition = of_execution(&recorded.recorded);
    let why = why_blocked(flow.as_ref())
        .or_else(|| why_later(execution, now))
        .or_else(|| describe_execution(&disposition, Some(&recorded)))
        .unwrap_or_default();
    Ok(ExplainedExecution {
        disposition: disposition.word().to_owned(),
        why,
        flow,
        execution: summary(execution, &recorded),
        timeline,
        job_name: execution.job_name.clone(),
        execution_key: execution.execution_key.clone(),
        scheduled_for: execution.scheduled_for,
    })
}

fn why_blocked(flow: Option<&FlowPlace>) -> Option<String> {
    let flow = flow?;
    let wait = describe_wait(&flow.member)?;
    Some(format!("as {} of the flow {}, it is held up: {wait}", flow.member.name, flow.flow_name))
}

fn why_later(execution: &Execution, now: DateTime<Utc>) -> Option<String> {
    let due = execution.next_attempt_at.filter(|due| execution.is_waiter() && *due > now)?;
    Some(format!("it was enqueued for later, and is due at {}", instant(due)))
}

/// A member that waits for others is due at no instant yet.
fn summary(execution: &Execution, recorded: &FiringExecution) -> ExecutionSummary {
    let mut summary = ExecutionSummary::new(recorded);
    if execution.is_blocked() {
        summary.next_attempt_at = None;
    }
    summary
}
