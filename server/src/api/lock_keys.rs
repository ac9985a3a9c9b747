//! Changes the registry of lock keys, and checks it.

use axum::Json;
use serde::{Deserialize, Serialize};
use sexton_model::lock_key::assignment::{RangeChange, RangeRequest};
use sexton_model::lock_key::formula::MAX_NAME_BYTES;
use sexton_model::lock_key::{DeriveError, KeyFormula, KeyRange};
use sexton_operations::error::{InvalidRequest, OperationError};
use sexton_operations::lock_keys::{self, KeyFindings, LockKeyOfName};
use tokio::sync::Semaphore;
use utoipa::ToSchema;

use super::extract::{Body, Path};
use super::file_request::FileRequest;
use super::problem_of_field;
use crate::access::{Allowed, Editor, Viewer};
use crate::problem::{Problem, ProblemPlace};

/// The name of the file in problems unless the request says it.
const FILE_NAME: &str = "lock-keys";

/// The range of a service.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AssignKeys {
    /// Its first key; the next free number, or the present start, if absent.
    start: Option<i64>,
    /// How many keys it has; 50, or the present number, if absent.
    keys: Option<u32>,
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// A range that was assigned or changed, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangedKeys {
    /// The range until now; absent: it is new.
    before: Option<KeyRange>,
    /// The range from now on.
    after: KeyRange,
}

impl From<RangeChange> for ChangedKeys {
    fn from(RangeChange { before, after }: RangeChange) -> Self {
        Self { before, after }
    }
}

/// Assigns a range of lock keys to a service, or changes the range that it has.
#[utoipa::path(post, path = "/lock-keys/{name}/assign", tag = "locks", operation_id = "assign_lock_keys",
    extensions(("x-role" = json!("editor"))),
    params(("name" = String, Path, description = "The service: what its jobs' names have before the first dot.")),
    request_body = AssignKeys,
    responses((status = 200, description = "The range.", body = ChangedKeys)))]
pub async fn assign(
    allowed: Allowed<Editor>,
    Path(name): Path<String>,
    Body(AssignKeys { start, keys, reason }): Body<AssignKeys>,
) -> Result<Json<ChangedKeys>, Problem> {
    let request = RangeRequest { service: name, first: start, keys };
    let store = allowed.writes();
    let assigned = lock_keys::assign(&store, &request, allowed.actor(), reason.as_deref()).await;
    let change = assigned.map_err(|error| Problem::from(error).in_body(&[]))?;
    Ok(Json(change.into()))
}

/// How to remove a range.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RemoveKeys {
    /// Only say what would be removed.
    dry_run: bool,
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// A range that was removed, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedKeys {
    /// Whether nothing was written.
    dry_run: bool,
    /// The range until now.
    before: KeyRange,
    /// The range from now on: always null.
    after: Option<KeyRange>,
}

/// Removes the range of a service that is gone. Jobs must not have keys of it.
#[utoipa::path(post, path = "/lock-keys/{name}/remove", tag = "locks", operation_id = "remove_lock_keys",
    extensions(("x-role" = json!("editor"))),
    params(("name" = String, Path, description = "The service.")), request_body = RemoveKeys,
    responses((status = 200, description = "It is removed, or would be.", body = RemovedKeys)))]
pub async fn remove(
    allowed: Allowed<Editor>,
    Path(name): Path<String>,
    Body(RemoveKeys { dry_run, reason }): Body<RemoveKeys>,
) -> Result<Json<RemovedKeys>, Problem> {
    let store = allowed.writes();
    let (actor, reason) = (allowed.actor(), reason.as_deref());
    let before = lock_keys::remove(&store, &name, dry_run, actor, reason).await?;
    Ok(Json(RemovedKeys { dry_run, before, after: None }))
}

/// What an import changed, or would.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportedKeys {
    /// Whether nothing was written.
    dry_run: bool,
    /// Ranges that are new or changed, in the order of the file.
    changes: Vec<ChangedKeys>,
    /// Number of the others.
    unchanged: usize,
}

/// Imports ranges from the text of a file, CSV with the columns service, start and keys, or JSON, as `sexton keys list` writes them: all of them
/// or, on any problem, none. A service that it lacks keeps its range.
#[utoipa::path(post, path = "/lock-keys:import", tag = "locks", operation_id = "import_lock_keys",
    extensions(("x-role" = json!("editor"))), request_body = FileRequest,
    responses((status = 200, description = "What changed, or would.", body = ImportedKeys)))]
pub async fn import(
    allowed: Allowed<Editor>,
    Body(request): Body<FileRequest>,
) -> Result<Json<ImportedKeys>, Problem> {
    let store = allowed.writes();
    let (name, dry_run) = (request.name_or(FILE_NAME), request.dry_run);
    let (actor, reason) = (allowed.actor(), request.reason.as_deref());
    let all = lock_keys::import(&store, name, &request.text, dry_run, actor, reason).await?;
    let count = all.len();
    let changes: Vec<ChangedKeys> =
        all.into_iter().filter(RangeChange::is_change).map(ChangedKeys::from).collect();
    let unchanged = count - changes.len();
    Ok(Json(ImportedKeys { dry_run, changes, unchanged }))
}

/// Checks at the same time: each reads the names of all jobs.
static CHECKS: Semaphore = Semaphore::const_new(1);

/// Finds jobs without a key of their service's range, and keys and ranges that do not fit together.
#[utoipa::path(get, path = "/lock-keys:check", tag = "locks", operation_id = "check_lock_keys", extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "The findings.", body = KeyFindings)))]
pub async fn check(allowed: Allowed<Viewer>) -> Result<Json<KeyFindings>, Problem> {
    let Ok(_turn) = CHECKS.try_acquire() else {
        return Err(Problem::unavailable("somebody else checks the lock keys"));
    };
    Ok(Json(KeyFindings::new(lock_keys::check(allowed.reads(), &[]).await?)))
}

/// A name whose key to derive.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeriveLockKey {
    /// The name that the other system locks, at most 10,000 bytes.
    #[schema(max_length = 10000)]
    name: String,
    /// The system whose formula computes the key.
    like: KeyFormula,
    /// The prefix, class or table of the formulas that have one, at most 10,000 bytes.
    #[schema(max_length = 10000)]
    namespace: Option<String>,
}

/// Derives the key that another system's formula gives a name, as `sexton keys derive` does, and says where `pg_locks` shows its lock.
#[utoipa::path(post, path = "/lock-keys:derive", tag = "locks", operation_id = "derive_lock_key",
    extensions(("x-role" = json!("viewer"))), request_body = DeriveLockKey,
    responses((status = 200, description = "The key.", body = LockKeyOfName)))]
pub async fn derive(
    allowed: Allowed<Viewer>,
    Body(DeriveLockKey { name, like, namespace }): Body<DeriveLockKey>,
) -> Result<Json<LockKeyOfName>, Problem> {
    let namespace = namespace.as_deref();
    let mut places = Vec::new();
    for (pointer, text) in [("/name", Some(name.as_str())), ("/namespace", namespace)] {
        if text.is_some_and(|text| text.len() > MAX_NAME_BYTES || text.contains('\0')) {
            places.push(ProblemPlace::at(pointer, DeriveError::Text.to_string()));
        }
    }
    if !places.is_empty() {
        return Err(Problem::several(places));
    }
    let derived = lock_keys::derive_on(allowed.reads(), like, &name, namespace).await;
    let key = derived.map_err(|error| problem_of_derivation(error, &name))?;
    Ok(Json(LockKeyOfName::new(like, &name, namespace, &key)))
}

/// Names the field of the body that keeps a name from having a key.
fn problem_of_derivation(error: OperationError, name: &str) -> Problem {
    let OperationError::Invalid(InvalidRequest::LockKey(refused)) = &error else {
        return error.into();
    };
    let pointer = match refused {
        DeriveError::NamespaceMissing(_)
        | DeriveError::NamespaceUnused(_)
        | DeriveError::NamespaceSlash => "/namespace",
        DeriveError::PairOverflow(text) if !name.starts_with(text.as_str()) => "/namespace",
        DeriveError::PairOverflow(_)
        | DeriveError::NotInteger(_)
        | DeriveError::Rounded { .. }
        | DeriveError::Text => "/name",
    };
    problem_of_field(pointer, &refused.to_string())
}
