//! Whether params fit what the workers at work say of their task type.
//!
//! Who runs a task publishes what its params must hold, and no two workers have to agree: each schema is asked. An
//! edit and a trigger run at once, so what does not fit is refused there. A jobs file is told of it and applied all
//! the same, unless that is asked for: the workers that will run it may come after it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;
use serde_json::Value;
use sexton_model::job::JobSpec;
use sexton_model::params_schema::SchemaValidator;
use sexton_store::{Store, offers};

use crate::failure::Failure;
use crate::show::line;

/// What is told to people.
const TOLD: usize = 50;
/// What is found in jobs files at the most.
const MOST: usize = 1_000;
/// The most characters of one.
const MAX_CHARS: usize = 400;

/// A place at which params do not fit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Misfit {
    /// JSON Pointer into the params; `/`: the params themselves.
    pub at: String,
    /// What is wanted there, without what stands there.
    pub what: String,
    /// Who wants it, where workers disagree; at most ten of them.
    pub workers: Vec<String>,
}

impl Misfit {
    /// In words.
    pub fn told(&self) -> String {
        let by = match self.workers.as_slice() {
            [] => String::new(),
            workers => format!(" (by {})", workers.join(", ")),
        };
        line(&format!("{}: {}{by}", self.at, self.what), MAX_CHARS)
    }
}

/// The schemas that the workers at work in a pool have for a task type.
#[derive(Debug)]
pub struct Wanted {
    task_type: String,
    /// Whether any worker at work offers it.
    offered: bool,
    several: bool,
    schemas: Vec<(SchemaValidator, Vec<String>)>,
    /// Whose schema this version cannot read.
    unread: Vec<String>,
}

impl Wanted {
    /// Asks the database.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn of(store: &Store, task_type: &str, pool: &str) -> Result<Self, Failure> {
        let in_use = offers::list_current_schemas(store, task_type, pool, None).await?;
        let (offered, several) = (!in_use.is_empty(), in_use.len() > 1);
        let (mut schemas, mut unread) = (Vec::new(), Vec::new());
        for one in in_use {
            match one.schema.as_ref().map(SchemaValidator::new) {
                Some(Ok(checker)) => schemas.push((checker, one.workers)),
                Some(Err(_)) => unread.extend(one.workers),
                None => {}
            }
        }
        Ok(Self { task_type: task_type.to_owned(), offered, several, schemas, unread })
    }

    /// What people should know beside: that nothing is validated, or not by all.
    pub fn notes(&self) -> Vec<String> {
        let task = &self.task_type;
        let mut notes = Vec::new();
        if !self.unread.is_empty() {
            let names = self.unread.join(", ");
            notes.push(format!("The schema of {names} is of a version that this one cannot read."));
        } else if self.schemas.is_empty() {
            let why = if self.offered {
                "no catalogue has a params_schema for"
            } else {
                "no worker at work offers"
            };
            notes.push(format!("The params were not validated: {why} {task}."));
        }
        if self.several && !self.schemas.is_empty() {
            let text = "Workers disagree about what these params must hold; they are validated against each.";
            notes.push(text.to_owned());
        }
        notes.iter().map(|note| line(note, 500)).collect()
    }

    /// Every place at which `params` do not fit.
    pub fn misfits(&self, params: &Value) -> Vec<Misfit> {
        let each = self.schemas.iter().flat_map(|(checker, workers)| {
            checker.violations(params).into_iter().map(|found| Misfit {
                at: if found.at.is_empty() { "/".to_owned() } else { found.at },
                what: found.what,
                workers: if self.several { workers.clone() } else { Vec::new() },
            })
        });
        each.collect()
    }

    /// Refuses params that do not fit.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] with every place.
    pub fn check(&self, params: &Value) -> Result<(), Failure> {
        let misfits = self.misfits(params);
        if misfits.is_empty() {
            return Ok(());
        }
        let mut told: Vec<String> = misfits.iter().take(TOLD).map(Misfit::told).collect();
        if misfits.len() > TOLD {
            told.push(format!("and {} more", misfits.len() - TOLD));
        }
        Err(Failure::Usage(format!(
            "the params do not fit what a worker's catalogue says of {}; nothing was done:\n  {}",
            line(&self.task_type, 100),
            told.join("\n  ")
        )))
    }
}

/// A misfit of a job in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OfJob {
    /// The job's name.
    pub job: String,
    /// Where and what.
    #[serde(flatten)]
    pub misfit: Misfit,
}

impl OfJob {
    /// In words.
    pub fn told(&self) -> String {
        self.misfit.told()
    }
}

/// The misfits of all jobs, in their order; at most 1,000.
///
/// # Errors
///
/// Those of the database.
pub async fn of_jobs(store: &Store, specs: &[JobSpec]) -> Result<Vec<OfJob>, Failure> {
    let mut wanted: BTreeMap<(&str, &str), Wanted> = BTreeMap::new();
    let mut found = Vec::new();
    for spec in specs {
        let (task, pool) = (spec.task_type.as_str(), spec.pool.as_str());
        let wanted = match wanted.entry((task, pool)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(Wanted::of(store, task, pool).await?),
        };
        let misfits = wanted.misfits(&spec.params);
        found.extend(misfits.into_iter().map(|misfit| OfJob { job: spec.name.clone(), misfit }));
        if found.len() >= MOST {
            found.truncate(MOST);
            break;
        }
    }
    Ok(found)
}
