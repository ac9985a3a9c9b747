//! What a command on many executions selects: ids, or a filter.

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_model::failures::FailureFilter;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_store::{Store, executions};

use crate::commands::reference;
use crate::failed::filter::FilterArguments;
use crate::failure::Failure;

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

/// What a [`Selector`] selects.
#[derive(Debug)]
pub(super) enum Selection {
    /// These, each once.
    Ids(Vec<ExecutionId>),
    /// What fits.
    Filter(Box<FailureFilter>),
}

impl Selector {
    /// Reads it, of failed or of discarded executions; nothing is done before all of it is understood.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] when nothing is selected, or ids and a filter at once; [`Failure::NotFound`] for
    /// an id, a job or a group that is not there.
    pub(super) async fn select(
        &self,
        store: &Store,
        discarded: bool,
        now: DateTime<Utc>,
    ) -> Result<Selection, Failure> {
        if !self.ids.is_empty() {
            if self.all || !self.filter.is_empty() {
                let text = "give ids or a filter, not both: ids select by themselves";
                return Err(Failure::Usage(text.to_owned()));
            }
            return Ok(Selection::Ids(self.resolve(store).await?));
        }
        let filter = self.filter.read(store, discarded, now).await?;
        if filter.matches_everything() && !self.all {
            let text = "say which: ids, a filter (--job, --fingerprint, --error-class, … as `--help` has \
                        them), or --all";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(Selection::Filter(Box::new(filter)))
    }

    /// Every id is resolved before anything is done; one that is given twice counts once.
    async fn resolve(&self, store: &Store) -> Result<Vec<ExecutionId>, Failure> {
        let mut ids = Vec::with_capacity(self.ids.len());
        for text in &self.ids {
            let id = ExecutionId::new(reference::execution(store, text).await?);
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }
}

/// The attempt numbers that these have now. Ids of which there is no execution are left out.
///
/// # Errors
///
/// Those of the database.
pub(super) async fn current_attempts(
    store: &Store,
    ids: &[ExecutionId],
) -> Result<Vec<(ExecutionId, AttemptNumber)>, Failure> {
    let mut attempts = Vec::with_capacity(ids.len());
    for id in ids {
        let row = executions::find(store, id.get()).await?;
        attempts.extend(row.and_then(|row| Some((*id, AttemptNumber::new(row.attempt)?))));
    }
    Ok(attempts)
}
