//! `noop = true`: a task type that does nothing and succeeds.
//!
//! It shows when a schedule fires, and what an attempt costs without its task. It ends at once, so it needs no
//! stop.

use async_trait::async_trait;

use crate::executor::{Executor, Outcome, TaskControl, TaskEnd, TaskRun};

/// An executor that runs nothing.
#[derive(Debug)]
pub(crate) struct NoopExecutor;

#[async_trait]
impl Executor for NoopExecutor {
    async fn run(&self, _: &TaskRun, _: TaskControl) -> TaskEnd {
        TaskEnd::new(Outcome::Succeeded)
    }
}
