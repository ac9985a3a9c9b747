//! The options that say which failed executions are meant; the same for every command.

use clap::Args;

use crate::graveyard::asked::Asked;

/// Which executions; all that is given must hold.
#[derive(Clone, Debug, Args)]
pub(super) struct FilterArguments {
    /// Of this job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Of this task type
    #[arg(long, value_name = "TYPE")]
    task_type: Option<String>,
    /// Of this pool
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// With this class of error, as in exit_1
    #[arg(long, value_name = "CLASS")]
    error_class: Option<String>,
    /// With these words in the message, one after the other; the last one may be begun only
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// Of this group: its fingerprint, or the beginning as far as it is unique
    #[arg(long, value_name = "FINGERPRINT")]
    fingerprint: Option<String>,
    /// Failed at or after this: 2025-12-01T08:00:00Z, 2025-12-01 or, so long ago, 36h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Failed before this
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Whose last attempt ran on the worker of this name
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Of jobs with this label; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// With this in its params, as in customer=4891 or order.id=7; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    params: Vec<String>,
    /// Those of muted groups as well
    #[arg(long)]
    muted: bool,
}

impl FilterArguments {
    /// As the library reads it.
    pub(super) fn asked(&self, discarded: bool) -> Asked {
        Asked {
            discarded,
            job: self.job.clone(),
            task_type: self.task_type.clone(),
            pool: self.pool.clone(),
            error_class: self.error_class.clone(),
            text: self.text.clone(),
            fingerprint: self.fingerprint.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            worker: self.worker.clone(),
            labels: self.label.clone(),
            params: self.params.clone(),
            muted: self.muted,
        }
    }
}
