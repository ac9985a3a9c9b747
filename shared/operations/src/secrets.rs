//! Masks secrets in rows for display, by the rule of [`mask_secrets`]. Stored rows and the values that tasks receive
//! are not masked.

use sexton_model::failures::mask_secrets;
use sexton_store::executions::Execution;
use sexton_store::operator::OperatorAction;

/// Masks the params of executions.
pub fn mask_executions(executions: &mut [Execution]) {
    for execution in executions {
        execution.params = mask_secrets(&execution.params);
    }
}

/// Masks the actions' values before and after.
pub fn mask_actions(actions: &mut [OperatorAction]) {
    for action in actions {
        action.before = action.before.as_ref().map(mask_secrets);
        action.after = action.after.as_ref().map(mask_secrets);
    }
}
