//! Which executions a command on many of them means.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_model::fingerprint::Fingerprint;
use sexton_model::graveyard::{Filter, ParamEquals, text_query};
use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_store::{Store, executions, jobs};

use crate::commands::{instant, jobs as job_commands, reference};
use crate::failure::Failure;

/// Ids, or what they have in common; everything that is given must hold.
#[derive(Debug, Args, Default)]
pub struct Which {
    /// Ids, or their beginnings as far as they are unique
    #[arg(num_args = 0..=1_000, value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Of this job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Of this task type
    #[arg(long, value_name = "TYPE")]
    task_type: Option<String>,
    /// Of this pool
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// With this class of error
    #[arg(long, value_name = "CLASS")]
    error_class: Option<String>,
    /// Of this group of errors, by its fingerprint
    #[arg(long, value_name = "FINGERPRINT")]
    group: Option<Fingerprint>,
    /// With an attempt on this worker
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// With these words, one after the other, in the error's message
    #[arg(long)]
    text: Option<String>,
    /// Failed (or discarded) at or after this: 2025-12-01T08:00:00Z, 2025-12-01 or, so long ago, 36h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Failed (or discarded) before this
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Of jobs with this label; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// With this in the params, as in customer=4891; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    params: Vec<ParamEquals>,
    /// All there are; needed where nothing else is given
    #[arg(long)]
    all: bool,
}

/// What was asked for.
#[derive(Debug)]
pub(super) enum Meant {
    /// These, each once.
    Ids(Vec<ExecutionId>),
    /// What fits.
    Filter(Box<Filter>),
}

impl Which {
    /// Understands it; nothing is done before all of it is understood.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] when nothing is asked for, or ids and a filter at once; [`Failure::NotFound`] for
    /// an id or a job that is not there.
    pub(super) async fn meant(
        &self,
        store: &Store,
        discarded: bool,
        now: DateTime<Utc>,
    ) -> Result<Meant, Failure> {
        let filter = self.filter(store, discarded, now).await?;
        if !self.ids.is_empty() {
            if self.all || !filter.is_everything() {
                let text = "give ids or what they have in common, not both";
                return Err(Failure::Usage(text.to_owned()));
            }
            return Ok(Meant::Ids(self.resolve(store).await?));
        }
        if filter.is_everything() && !self.all {
            let text = "say which: ids, what they have in common (--job, --group, --error-class, … as \
                        `--help` has them), or --all";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(Meant::Filter(Box::new(filter)))
    }

    /// Every id is understood before anything is done; one that is given twice is meant once.
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

    async fn filter(
        &self,
        store: &Store,
        discarded: bool,
        now: DateTime<Utc>,
    ) -> Result<Filter, Failure> {
        let job = match &self.job {
            None => None,
            Some(name) => match jobs::find_ever(store, name).await? {
                Some(job) => Some(JobId::new(job.id)),
                None => return Err(job_commands::missing(store, name).await),
            },
        };
        let moment = |option, text: &Option<String>| {
            text.as_deref().map(|text| instant::parse(option, text, now)).transpose()
        };
        if self.text.as_deref().is_some_and(|text| text_query(text).is_none()) {
            let text = "--text holds no word to look for: a letter or a digit at least";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(Filter {
            discarded,
            job,
            task_type: self.task_type.clone(),
            pool: self.pool.clone(),
            error_class: self.error_class.clone(),
            fingerprint: self.group,
            worker: self.worker.clone(),
            text: self.text.clone(),
            since: moment("--since", &self.since)?,
            until: moment("--until", &self.until)?,
            labels: self.labels()?,
            params: self.params.clone(),
            muted: false,
        })
    }

    fn labels(&self) -> Result<BTreeMap<String, String>, Failure> {
        let wrong: Vec<&str> =
            self.label.iter().map(String::as_str).filter(|text| !text.contains('=')).collect();
        if !wrong.is_empty() {
            let text = format!("{wrong:?}: write a label as in team=billing");
            return Err(Failure::Usage(text));
        }
        let pairs = self.label.iter().filter_map(|text| text.split_once('='));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// The attempt numbers that these have now. Ids of which there is no execution are left out.
///
/// # Errors
///
/// Those of the database.
pub(super) async fn seen(
    store: &Store,
    ids: &[ExecutionId],
) -> Result<Vec<(ExecutionId, AttemptNumber)>, Failure> {
    let mut seen = Vec::with_capacity(ids.len());
    for id in ids {
        let row = executions::find(store, id.get()).await?;
        seen.extend(row.and_then(|row| Some((*id, AttemptNumber::new(row.attempt)?))));
    }
    Ok(seen)
}
