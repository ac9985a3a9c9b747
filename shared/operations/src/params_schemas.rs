//! Validates params against the schemas that active workers publish for a task type.
//!
//! The workers that run a task publish the schema of its params, and no two workers have to agree: params must match
//! each schema. An edit and a trigger run at once, so mismatches are refused there. For a jobs file they are only
//! reported unless the caller demands validation: the workers that will run it may be deployed after it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;
use serde_json::Value;
use sexton_model::job::JobSpec;
use sexton_model::params_schema::SchemaValidator;
use sexton_model::template::has_placeholder;
use sexton_store::{Store, offers};

use crate::error::{InvalidRequest, OperationError};
use crate::schema_mismatch::SchemaMismatch;
use crate::text::line;

/// Maximum number of mismatches found in jobs files.
const MAX_MISMATCHES: usize = 1_000;

/// The schemas that the active workers in a pool have for a task type.
#[derive(Debug)]
pub struct ParamsSchemas {
    task_type: String,
    /// Whether any active worker offers it.
    is_offered: bool,
    has_several: bool,
    schemas: Vec<(SchemaValidator, Vec<String>)>,
    /// The workers whose schemas this version cannot read.
    unreadable: Vec<String>,
}

impl ParamsSchemas {
    /// Reads them from the database.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn load(store: &Store, task_type: &str, pool: &str) -> Result<Self, OperationError> {
        let in_use = offers::list_current_schemas(store, task_type, pool, None).await?;
        let (is_offered, has_several) = (!in_use.is_empty(), in_use.len() > 1);
        let (mut schemas, mut unreadable) = (Vec::new(), Vec::new());
        for offer in in_use {
            match offer.schema.as_ref().map(SchemaValidator::new) {
                Some(Ok(checker)) => schemas.push((checker, offer.workers)),
                Some(Err(_)) => unreadable.extend(offer.workers),
                None => {}
            }
        }
        Ok(Self { task_type: task_type.to_owned(), is_offered, has_several, schemas, unreadable })
    }

    /// Returns notes for people: that nothing is validated, or not by all workers.
    pub fn notes(&self) -> Vec<String> {
        let task = &self.task_type;
        let mut notes = Vec::new();
        if !self.unreadable.is_empty() {
            let names = self.unreadable.join(", ");
            notes.push(format!("The schema of {names} is of a version that this one cannot read."));
        } else if self.schemas.is_empty() {
            let why = if self.is_offered {
                "no catalogue has a params_schema for"
            } else {
                "no worker at work offers"
            };
            notes.push(format!("The params were not validated: {why} {task}."));
        }
        if self.has_several && !self.schemas.is_empty() {
            let text = "Workers disagree about what these params must hold; they are validated against each.";
            notes.push(text.to_owned());
        }
        notes.iter().map(|note| line(note, 500)).collect()
    }

    /// Returns every place at which `params` do not match, except where a placeholder is to be filled: a worker validates
    /// what comes there before it runs the task.
    pub fn mismatches(&self, params: &Value) -> Vec<SchemaMismatch> {
        let unfilled = |at: &str| {
            params.pointer(at).is_some_and(|value| value.is_string() && has_placeholder(value))
        };
        let each = self.schemas.iter().flat_map(|(checker, workers)| {
            let found = checker.violations(params).into_iter().filter(|one| !unfilled(&one.at));
            found.map(|found| SchemaMismatch {
                at: if found.at.is_empty() { "/".to_owned() } else { found.at },
                what: found.what,
                workers: if self.has_several { workers.clone() } else { Vec::new() },
            })
        });
        each.collect()
    }

    /// Refuses params that do not match.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] with every place.
    pub fn check(&self, params: &Value) -> Result<(), InvalidRequest> {
        let mismatches = self.mismatches(params);
        if mismatches.is_empty() {
            return Ok(());
        }
        Err(InvalidRequest::Params { task_type: self.task_type.clone(), mismatches })
    }
}

/// A place at which the params of a job in a file do not match.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobMismatch {
    /// The job's name.
    pub job: String,
    /// The place and the demand.
    #[serde(flatten)]
    pub mismatch: SchemaMismatch,
}

impl JobMismatch {
    /// Describes it in words.
    pub fn describe(&self) -> String {
        self.mismatch.describe()
    }
}

/// Returns the mismatches of all jobs, in their order; at most 1,000.
///
/// # Errors
///
/// Those of the database.
pub async fn validate_jobs(
    store: &Store,
    specs: &[JobSpec],
) -> Result<Vec<JobMismatch>, OperationError> {
    let mut params_schemas: BTreeMap<(&str, &str), ParamsSchemas> = BTreeMap::new();
    let mut found = Vec::new();
    for spec in specs {
        let (task, pool) = (spec.task_type.as_str(), spec.pool.as_str());
        let params_schemas = match params_schemas.entry((task, pool)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(ParamsSchemas::load(store, task, pool).await?),
        };
        let mismatches = params_schemas.mismatches(&spec.params);
        found.extend(
            mismatches.into_iter().map(|mismatch| JobMismatch { job: spec.name.clone(), mismatch }),
        );
        if found.len() >= MAX_MISMATCHES {
            found.truncate(MAX_MISMATCHES);
            break;
        }
    }
    Ok(found)
}
