//! The options that select failed executions: ids, or the filter of all commands.

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_model::failures::FailureFilter;
use sexton_operations::filter::FailureScope;
use sexton_operations::selection::{Selection, SelectionRequest};
use sexton_store::Store;

use crate::failure::Failure;
use crate::options::FilterOptions;

/// Whether to include muted groups.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Args)]
pub(super) struct MutedOption {
    /// Include muted groups; by default they are left out and counted
    #[arg(long)]
    pub(super) muted: bool,
}

/// Ids, or a filter.
#[derive(Debug, Args, Default)]
pub struct Selector {
    /// Ids of executions, or unique beginnings of them
    #[arg(num_args = 0..=1_000, value_name = "ID")]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    filter: FilterOptions,
    #[command(flatten)]
    muted: MutedOption,
    /// Select all, without muted groups unless --muted is given; required if nothing else selects
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
    ) -> Result<Selection<FailureFilter>, Failure> {
        let filter = self.filter.request();
        let request = SelectionRequest { ids: &self.ids, filter: &filter, all: self.all };
        let scope = FailureScope { discarded, muted: self.muted.muted };
        Ok(request.read_failures(store, scope, now).await?)
    }
}
