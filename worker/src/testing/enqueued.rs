//! Attempts of executions that a test of a producer enqueued.

use sexton_client::Job;
use sexton_client::testing::EnqueuedExecution;

use super::{HandlerTest, run};
use crate::executor::TaskRun;
use crate::handler::Handler;

/// Creates a test of `handler` with an execution that the test has enqueued: its job, keys, params and number, as a worker
/// would get them, at the instant at which the attempt is due. The timeout is an hour until the test [sets
/// it](HandlerTest::timeout), whatever the job's is.
///
/// ```no_run
/// # use serde::{Deserialize, Serialize};
/// # use sexton_worker::{Ctx, HandlerError, Job};
/// # #[derive(Serialize, Deserialize)]
/// # struct Charge { order: i64 }
/// # impl Job for Charge { const NAME: &'static str = "billing.charge"; }
/// # async fn charge(_: Ctx, _: Charge) -> Result<(), HandlerError> { Ok(()) }
/// # async fn test(tx: &mut sexton_worker::sqlx::PgConnection) -> Result<(), sexton_client::testing::ReadError> {
/// use sexton_worker::testing::{Outcome, run_enqueued};
///
/// let charges = sexton_client::testing::enqueued::<Charge>(tx).await?;
/// let ran = charges.run_now(async |execution| run_enqueued(&execution, charge).await).await;
/// assert_eq!(ran[0].outcome, Outcome::Succeeded);
/// # Ok(())
/// # }
/// ```
///
/// In the database nothing changes: the execution waits as before. The handler reads the params from the row, also
/// those fields that the producer's type does not write.
///
/// # Panics
///
/// If the job has another task than [`Job::TASK`]: a worker would not run it with this handler.
#[track_caller]
pub fn run_enqueued<J, H>(execution: &EnqueuedExecution<J>, handler: H) -> HandlerTest
where
    J: Job + Send + 'static,
    H: Handler<J>,
{
    let (job, task_type) = (&execution.job, &execution.task_type);
    assert!(
        task_type == J::TASK,
        "the job {job:?} has the task {task_type:?}, and this handler is for {:?}; correct `Job::TASK`, or the jobs file",
        J::TASK
    );
    let due = execution.next_attempt_at.unwrap_or(execution.scheduled_for);
    let test = run(handler)
        .params(execution.raw_params.clone())
        .attempt(execution.attempt)
        .at(due)
        .scheduled_for(execution.scheduled_for)
        .job(job)
        .idempotency_key(&execution.idempotency_key);
    let task = TaskRun {
        execution_id: execution.execution_id,
        execution_key: execution.execution_key.clone(),
        target: execution.target.clone(),
        ..test.task
    };
    HandlerTest { task, ..test }
}
