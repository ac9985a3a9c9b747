//! The options that select failed executions.
//!
//! Every command that selects by a filter has these options and no others, so that a list shows what a requeue
//! or discard of the same filter would take.

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_operations::failed::filter::FilterRequest;
use sexton_operations::failed::selection::{Selection, SelectionRequest};
use sexton_store::Store;

use crate::failure::Failure;

/// Which executions; all that is given must hold. Empty: everything that failed, but for muted groups.
#[derive(Clone, Default, PartialEq, Eq, Debug, Args)]
pub(super) struct FilterArguments {
    /// Of this job, even if it was deleted
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
    /// Of this group, also if it is muted: its fingerprint, or the beginning as far as it is unique
    #[arg(long, visible_alias = "group", value_name = "FINGERPRINT")]
    fingerprint: Option<String>,
    /// Failed (or discarded) at or after this: 2025-12-01T08:00:00Z, 2025-12-01, or a duration before now, as 36h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Failed (or discarded) before this
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Whose last attempt ran on the worker of this name
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Of jobs with this label; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// With this in their params, as in customer=4891 or order.id=7; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    params: Vec<String>,
    /// Of muted groups as well. Without it they are left out, and the command says how many
    #[arg(long)]
    muted: bool,
}

impl FilterArguments {
    /// As operations take it.
    pub(super) fn request(&self) -> FilterRequest {
        FilterRequest {
            job: self.job.clone(),
            task_type: self.task_type.clone(),
            pool: self.pool.clone(),
            error_class: self.error_class.clone(),
            text: self.text.clone(),
            fingerprint: self.fingerprint.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            worker: self.worker.clone(),
            label: self.label.clone(),
            params: self.params.clone(),
            muted: self.muted,
        }
    }
}

/// Ids, or a filter; of a filter everything that is given must hold.
#[derive(Debug, Args, Default)]
pub struct Selector {
    /// Ids, or their beginnings as far as they are unique
    #[arg(num_args = 0..=1_000, value_name = "ID")]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArguments,
    /// All of them, but for muted groups unless --muted is given; needed where nothing else selects any
    #[arg(long)]
    all: bool,
}

impl Selector {
    /// What it selects, of failed or of discarded executions.
    pub(super) async fn select(
        &self,
        store: &Store,
        discarded: bool,
        now: DateTime<Utc>,
    ) -> Result<Selection, Failure> {
        let filter = self.filter.request();
        let request = SelectionRequest { ids: &self.ids, filter: &filter, all: self.all };
        Ok(request.read(store, discarded, now).await?)
    }
}
