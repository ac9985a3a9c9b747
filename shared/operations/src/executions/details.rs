//! The details of one execution.

use serde::Serialize;
use sexton_store::Store;
use sexton_store::attempts::{self, Attempt};
use sexton_store::executions::{self, Execution};
use sexton_store::operator::{self, OperatorAction};
use uuid::Uuid;

use crate::error::OperationError;
use crate::execution_ids;
use crate::flows::{self, FlowDetails};
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
