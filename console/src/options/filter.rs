//! The options that select executions.
//!
//! Every command that selects by a filter has these options, so that a list shows what a requeue, discard or cancel of
//! the same filter would take.

use clap::Args;
use sexton_operations::filter::FilterRequest;

use super::{SINCE_HELP, UNTIL_HELP};

/// Which executions; an execution must meet all conditions.
#[derive(Clone, Default, PartialEq, Eq, Debug, Args)]
pub struct FilterOptions {
    /// Only executions of this job, even a deleted one
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Only executions of jobs whose names begin with this, such as billing.
    #[arg(long, value_name = "PREFIX")]
    job_prefix: Option<String>,
    /// Only executions of this task type
    #[arg(long, value_name = "TYPE")]
    task_type: Option<String>,
    /// Only executions of this pool
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Only executions whose last error has this class, such as exit_1
    #[arg(long, value_name = "CLASS")]
    error_class: Option<String>,
    /// Only executions whose error message has these words in this order; the last may be incomplete
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// Only executions of this failure group, even a muted one: its fingerprint, or a unique beginning
    #[arg(long, value_name = "FINGERPRINT")]
    group: Option<String>,
    // Not flattened: clap makes no group of options, for conflicts, of what has options flattened into it.
    #[arg(long, value_name = "INSTANT", help = SINCE_HELP)]
    since: Option<String>,
    #[arg(long, value_name = "INSTANT", help = UNTIL_HELP)]
    until: Option<String>,
    /// Only executions whose last attempt ran on this worker: an instance name, or a process id
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Only executions of jobs with this label; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Only executions with this in their params, such as customer=4891 or order.id=7; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    params: Vec<String>,
}

impl FilterOptions {
    /// The request for an operation.
    pub fn request(&self) -> FilterRequest {
        FilterRequest {
            job: self.job.clone(),
            job_prefix: self.job_prefix.clone(),
            task_type: self.task_type.clone(),
            pool: self.pool.clone(),
            error_class: self.error_class.clone(),
            text: self.text.clone(),
            group: self.group.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            worker: self.worker.clone(),
            label: self.label.clone(),
            params: self.params.clone(),
        }
    }
}
