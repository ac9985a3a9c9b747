//! `noop = true`: a task type that does nothing, and succeeds.
//!
//! It shows when a schedule fires, and what an attempt takes whatever its task does. It ends at once, so there is nothing to
//! stop.

use async_trait::async_trait;

use crate::executor::{Executor, Outcome, TaskControl, TaskEnd, TaskRun};

/// Runs nothing.
#[derive(Debug)]
pub(crate) struct NoopExecutor;

#[async_trait]
impl Executor for NoopExecutor {
    async fn run(&self, _: &TaskRun, _: TaskControl) -> TaskEnd {
        TaskEnd::new(Outcome::Succeeded)
    }
}
