//! Keys with which jobs that run elsewhere ping their checks by name.

use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use sexton_operations::checks::{self, DEFAULT_KEY_CHECKS};
use sexton_store::checks::keys::PingKey;
use utoipa::ToSchema;

use super::extract::{Body, Path, Query};
use super::idempotency::NotKept;
use super::{Items, Reason};
use crate::access::{Admin, Allowed};
use crate::problem::Problem;

/// A ping key to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePingKey {
    /// Its name, for people: a lower-case letter, and up to 62 letters, digits and hyphens.
    name: String,
    /// The most checks that pings with this key may create; 0: none.
    #[serde(default = "default_max_checks")]
    #[schema(minimum = 0, maximum = 100_000, default = 100)]
    max_checks: u32,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

const fn default_max_checks() -> u32 {
    DEFAULT_KEY_CHECKS
}

/// A ping key that was created.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedPingKey {
    /// Its name.
    name: String,
    /// The key, which is stored nowhere and shown this once.
    key: String,
}

/// Lists ping keys by name, without the keys themselves.
#[utoipa::path(get, path = "/ping-keys", tag = "checks", operation_id = "list_ping_keys", extensions(("x-role" = json!("admin"))),
    responses((status = 200, description = "The keys.", body = Items<PingKey>)))]
pub async fn list(allowed: Allowed<Admin>) -> Result<Json<Items<PingKey>>, Problem> {
    Ok(Json(Items { items: checks::keys(allowed.reads()).await? }))
}

/// Creates a ping key.
#[utoipa::path(post, path = "/ping-keys", tag = "checks", operation_id = "create_ping_key", extensions(("x-role" = json!("admin"))),
    request_body = CreatePingKey,
    responses((status = 201, description = "The key, shown this once.", body = CreatedPingKey)))]
pub async fn create(
    allowed: Allowed<Admin>,
    Body(new): Body<CreatePingKey>,
) -> Result<(StatusCode, Extension<NotKept>, Json<CreatedPingKey>), Problem> {
    let CreatePingKey { name, max_checks, reason } = new;
    let (store, actor) = (allowed.writes(), allowed.actor());
    let created = checks::create_key(&store, &name, max_checks, actor, reason.as_deref()).await;
    let key = created.map_err(|error| Problem::from(error).in_body(&[]))?;
    Ok((StatusCode::CREATED, Extension(NotKept), Json(CreatedPingKey { name, key })))
}

/// Deletes a ping key: pings with it are refused from now on, and its checks stay.
#[utoipa::path(delete, path = "/ping-keys/{name}", tag = "checks", operation_id = "delete_ping_key",
    extensions(("x-role" = json!("admin"))),
    params(("name" = String, Path, description = "The key's name."), Reason),
    responses((status = 204, description = "It is deleted.")))]
pub async fn delete(
    allowed: Allowed<Admin>,
    Path(name): Path<String>,
    Query(Reason { reason }): Query<Reason>,
) -> Result<StatusCode, Problem> {
    checks::delete_key(&allowed.writes(), &name, allowed.actor(), reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
