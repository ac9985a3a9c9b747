//! The policy sheet of a job.

use std::collections::BTreeSet;

use serde::Serialize;
use sexton_model::incident::Severity;
use sexton_model::policy::{self, Circumstances, Section};
use sexton_store::{Store, offers};

use crate::alerts;
use crate::error::OperationError;
use crate::job_names;

/// The sheet of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicySheet {
    /// The job's name.
    pub job: String,
    /// The severity of its incidents.
    pub severity: Severity,
    /// The five sections.
    pub sections: [Section; 5],
}

/// Reads the sheet of the job of that name: from its definition, the routes that are applied, and the live workers.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`], and those of the database.
pub async fn read(store: &Store, name: &str) -> Result<PolicySheet, OperationError> {
    let job = job_names::find(store, name).await?;
    let spec = job.spec()?;
    let routes = alerts::read(store).await?.routes;
    let offered =
        offers::list_current_schemas(store, &spec.task_type, spec.pool.as_str(), None).await?;
    let workers: BTreeSet<String> = offered.into_iter().flat_map(|one| one.workers).collect();
    let workers: Vec<String> = workers.into_iter().collect();
    let is_paused = job.status == "paused";
    let known = Circumstances { routes: &routes, workers: &workers, is_paused };
    Ok(PolicySheet {
        severity: spec.expectations.severity.unwrap_or_default(),
        sections: policy::sheet(&spec, &known),
        job: spec.name,
    })
}
