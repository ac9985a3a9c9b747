//! Edits failed executions.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sexton_model::id::AttemptNumber;
use sexton_model::params::check;
use sexton_model::pool::PoolName;
use sexton_model::state::State;
use sexton_operations::approvals::gate::{ApprovalDemand, Outcome};
use sexton_operations::bulks::verified_requeue::{EditOutcome, edit_and_requeue};
use sexton_operations::failed::changes::Change;
use sexton_operations::failed::edit::{Difference, EditOptions, EditTarget};
use sexton_operations::failed::masked::{masked_places, merge};
use sexton_operations::params_schemas::ParamsSchemas;
use sexton_operations::schema_mismatch::SchemaMismatch;
use sexton_store::Store;
use sexton_store::approvals::ApprovalRequest;
use utoipa::ToSchema;
use uuid::Uuid;

use super::approvals::waiting;
use super::extract::{Body, Path};
use crate::access::{Allowed, Editor};
use crate::problem::{Problem, ProblemPlace};

/// An edit of a failed execution. Without `params` and `merge` its params stay.
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own")]
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFailure {
    /// All of its new params. Those that were read from here have `***` for secrets: send the secrets, or use `merge`.
    #[schema(value_type = Option<Object>)]
    params: Option<Map<String, Value>>,
    /// Or changes to its params, as a JSON merge patch (RFC 7396): fields that it does not name stay, `null` removes one.
    #[schema(value_type = Option<Object>)]
    merge: Option<Map<String, Value>>,
    /// Its new pool; unchanged if absent.
    pool: Option<String>,
    /// Also a pool from which no worker consumes.
    #[serde(default)]
    force_pool: bool,
    /// The attempt number that the sender has seen: a later failure is not edited. The current one if absent.
    #[schema(minimum = 1)]
    attempt: Option<i32>,
    /// Whether it is requeued; otherwise it stays failed.
    #[serde(default = "yes")]
    #[schema(default = true)]
    requeue: bool,
    /// Without the verify task of its job, which the audit records.
    #[serde(default)]
    no_verify: bool,
    /// Only say what would change, and whether that fits.
    #[serde(default)]
    dry_run: bool,
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "super::required_reason")]
    reason: String,
}

const fn yes() -> bool {
    true
}

/// An edited execution, or what an edit would change.
#[derive(Debug, Serialize, ToSchema)]
pub struct EditedFailure {
    /// The execution.
    id: Uuid,
    /// Its state now.
    state: State,
    /// Whether nothing was written.
    dry_run: bool,
    /// The changed places in its params, without the values.
    changes: Vec<Change>,
    /// Its new pool; absent: unchanged.
    pool: Option<String>,
    /// Of a dry run: where the new params do not fit what workers say of the task. Otherwise such an edit is refused.
    schema_mismatches: Vec<SchemaMismatch>,
    /// What could not be checked or done, in words.
    notes: Vec<String>,
    /// The bulk that runs the verify task of its job, and requeues it if its effect has not happened.
    bulk: Option<i64>,
    /// Of a dry run: what the edit needs from other people; `null`: nothing.
    approval: Option<ApprovalDemand>,
}

/// Changes the params or the pool of a failed execution, and requeues it.
#[utoipa::path(post, path = "/failures/{id}/edit", tag = "failures", operation_id = "edit_failure",
    extensions(("x-role" = json!("editor"))),
    params(("id" = Uuid, Path, description = "The execution's id.")), request_body = EditFailure,
    responses((status = 200, description = "What has changed, or would.", body = EditedFailure),
        (status = 202, description = "It waits for the approval of another person.", body = ApprovalRequest, headers(("Location", description = "Where to look at the request.")))))]
pub async fn edit(
    allowed: Allowed<Editor>,
    Path(id): Path<Uuid>,
    Body(request): Body<EditFailure>,
) -> Result<Response, Problem> {
    let store = allowed.writes();
    let pool = request.check()?;
    let options = EditOptions {
        pool: pool.as_ref(),
        is_pool_forced: request.force_pool,
        attempt: request.attempt.and_then(AttemptNumber::new),
        requeue: request.requeue,
        verify: !request.no_verify,
    };
    let target = EditTarget::find(&store, &id.to_string(), options).await?;
    let params = request.new_params(&target.row.params)?;
    let difference = target.compare(&params)?;
    let (schema_mismatches, notes) = mismatches(&store, &target, &difference, &params).await?;
    let mut answer = EditedFailure {
        id,
        state: State::Failed,
        dry_run: request.dry_run,
        changes: difference.params.clone(),
        pool: difference.pool.map(str::to_owned),
        schema_mismatches,
        notes,
        bulk: None,
        approval: None,
    };
    if request.dry_run {
        answer.approval = target.demand(&store, &params, &difference).await?;
        return Ok(Json(answer).into_response());
    }
    if !answer.schema_mismatches.is_empty() {
        let places = answer.schema_mismatches.iter().map(problem_of_mismatch);
        return Err(Problem::several(places.collect()));
    }
    let by = (allowed.actor(), request.reason.as_str());
    let outcome = match edit_and_requeue(&store, &target, &params, &difference, by).await? {
        Outcome::Done(outcome) => outcome,
        Outcome::Waits(request) => return Ok(waiting(&request, &allowed.base_path())),
    };
    match outcome {
        EditOutcome::Verifying(bulk) => answer.bulk = Some(bulk),
        EditOutcome::Done if request.requeue => answer.state = State::Pending,
        EditOutcome::Done => {}
    }
    Ok(Json(answer).into_response())
}

/// Where params do not fit, and what could not be checked; nothing if they stay.
async fn mismatches(
    store: &Store,
    target: &EditTarget<'_>,
    difference: &Difference<'_>,
    params: &Value,
) -> Result<(Vec<SchemaMismatch>, Vec<String>), Problem> {
    if difference.params.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let schemas: ParamsSchemas = target.schemas(store, difference).await?;
    Ok((schemas.mismatches(params), schemas.notes()))
}

fn problem_of_mismatch(mismatch: &SchemaMismatch) -> ProblemPlace {
    ProblemPlace::at(mismatch.pointer_in_body(), mismatch.describe())
}

impl EditFailure {
    /// Refuses what goes with no execution. Returns the pool.
    fn check(&self) -> Result<Option<PoolName>, Problem> {
        let mut places = Vec::new();
        if self.params.is_some() && self.merge.is_some() {
            places.push(ProblemPlace::at("/merge", "goes without params: send one of them"));
        }
        for (name, params) in [("/params", &self.params), ("/merge", &self.merge)] {
            if let Some(Err(error)) = params.as_ref().map(check) {
                places.push(ProblemPlace::at(name, error.to_string()));
            }
        }
        if self.attempt.is_some_and(|number| AttemptNumber::new(number).is_none()) {
            places.push(ProblemPlace::at("/attempt", "is no number of an attempt"));
        }
        if self.force_pool && self.pool.is_none() {
            places.push(ProblemPlace::at("/force_pool", "goes with a pool"));
        }
        let pool = self.pool.as_deref().map(PoolName::new).transpose();
        match pool {
            Ok(pool) if places.is_empty() => Ok(pool),
            Ok(_) => Err(Problem::several(places)),
            Err(error) => {
                places.push(ProblemPlace::at("/pool", error.to_string()));
                Err(Problem::several(places))
            }
        }
    }

    /// The params that an execution with those of `before` is to have.
    fn new_params(&self, before: &Value) -> Result<Value, Problem> {
        let (params, field) = match (&self.params, &self.merge) {
            (Some(params), _) => (Value::Object(params.clone()), "/params"),
            (None, Some(patch)) => {
                let mut params = before.as_object().cloned().unwrap_or_default();
                merge(&mut params, patch);
                let stored = check(&params);
                stored.map_err(|error| {
                    Problem::invalid(ProblemPlace::at(
                        "/merge",
                        format!("makes params that {error}"),
                    ))
                })?;
                (Value::Object(params), "/merge")
            }
            (None, None) => return Ok(before.clone()),
        };
        let places: Vec<_> = masked_places(before, &params)
            .into_iter()
            .map(|pointer| {
                let detail = "is the mask of a secret, which it would overwrite: send the secret, or leave the field to merge";
                ProblemPlace::at(format!("{field}{pointer}"), detail)
            })
            .collect();
        if places.is_empty() { Ok(params) } else { Err(Problem::several(places)) }
    }
}
