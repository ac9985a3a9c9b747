//! The details of one execution.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_store::Store;
use sexton_store::attempts::{self, Attempt};
use sexton_store::executions::{self, Execution};
use sexton_store::ledger::find_backfill;
use sexton_store::operator::{self, OperatorAction};
use uuid::Uuid;

use super::traces::{self, AttemptTrace};
use crate::error::OperationError;
use crate::execution_ids;
use crate::flows::{self, FlowDetails};
use crate::ledger::MAX_ATTEMPTS as MAX_TIMELINE_ATTEMPTS;
use crate::ledger::execution::{ExplainedExecution, FlowPlace, explain, find_place};
use crate::ledger::timeline::timeline;
use crate::secrets::{mask_actions, mask_executions};

/// Maximum number of attempts in one answer.
pub const MAX_ATTEMPTS: i32 = 100;

/// An execution, its attempts, and operators' actions on it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionDetails {
    /// The row.
    #[serde(flatten)]
    pub execution: Execution,
    /// The newest [`MAX_ATTEMPTS`], oldest first.
    pub attempts: Vec<Attempt>,
    /// Operators' actions, oldest first.
    #[serde(rename = "operator_actions")]
    pub actions: Vec<OperatorAction>,
    /// The flow that it is a member of, with its members.
    pub flow: Option<FlowDetails>,
}

/// Reads an execution; unless `unmasked`, masks values that look like secrets.
///
/// # Errors
///
/// [`crate::error::NotFound::Execution`].
pub async fn find(
    store: &Store,
    id: Uuid,
    unmasked: bool,
) -> Result<ExecutionDetails, OperationError> {
    let mut execution =
        executions::find(store, id).await?.ok_or_else(|| execution_ids::missing(id))?;
    let attempts = attempts::list_by_execution(store, id, MAX_ATTEMPTS.into()).await?;
    let mut actions = operator::list_by_execution(store, id).await?;
    if !unmasked {
        mask_executions(std::slice::from_mut(&mut execution));
        mask_actions(&mut actions);
    }
    let flow = match execution.flow_id {
        Some(_) => flows::of_member(store, id).await?,
        None => None,
    };
    Ok(ExecutionDetails { execution, attempts, actions, flow })
}

/// Everything that is known about an execution but its output.
#[derive(Clone, PartialEq, Debug)]
pub struct ExplainedDetails {
    /// The rows, masked.
    pub details: ExecutionDetails,
    /// What it waits for, or what became of it.
    pub explained: ExplainedExecution,
    /// Where its attempts are traced.
    pub traces: Vec<AttemptTrace>,
}

/// Reads the execution whose id is `id`, or begins so, each of its rows once. `now` is the database's clock.
///
/// # Errors
///
/// [`crate::error::NotFound::Execution`]; those of the database.
pub async fn find_explained(
    store: &Store,
    id: &str,
    now: DateTime<Utc>,
) -> Result<ExplainedDetails, OperationError> {
    let id = execution_ids::resolve(store, id).await?;
    let mut execution =
        executions::find(store, id).await?.ok_or_else(|| execution_ids::missing(id))?;
    let mut attempts = attempts::list_by_execution(store, id, MAX_TIMELINE_ATTEMPTS).await?;
    let mut actions = operator::list_by_execution(store, id).await?;
    let backfill = find_backfill(store, &execution).await?;
    let flow = match execution.flow_id {
        Some(_) => flows::of_member(store, id).await?,
        None => None,
    };
    let place = match &flow {
        Some(flow) => place_in(store, flow, id).await?,
        None => None,
    };
    let events = timeline(&execution, &attempts, &actions);
    let explained = explain(&execution, backfill, place, events, now)?;
    // The oldest of them are only in the timeline.
    attempts.drain(..attempts.len().saturating_sub(MAX_ATTEMPTS as usize));
    let traces = traces::list(&execution, &attempts);
    mask_executions(std::slice::from_mut(&mut execution));
    mask_actions(&mut actions);
    let details = ExecutionDetails { execution, attempts, actions, flow };
    Ok(ExplainedDetails { details, explained, traces })
}

/// Finds the place of an execution among the members of its flow; of a large flow, not all were read.
async fn place_in(
    store: &Store,
    flow: &FlowDetails,
    id: Uuid,
) -> Result<Option<FlowPlace>, OperationError> {
    match flow.all.iter().find(|member| member.execution_id == id) {
        Some(member) => Ok(Some(FlowPlace {
            flow_id: flow.flow.id,
            flow_name: flow.flow.name.clone(),
            member: member.clone(),
        })),
        None => Ok(find_place(store, id).await?),
    }
}
