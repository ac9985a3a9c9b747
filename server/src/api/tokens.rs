//! Tokens of the API.

use std::time::Duration;

use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use sexton_model::access::Role;
use sexton_operations::tokens::{self, Token};
use utoipa::ToSchema;

use super::extract::{Body, Path, Query};
use super::idempotency::NotKept;
use super::{Items, Reason};
use crate::access::{Admin, Allowed};
use crate::problem::Problem;

/// A token to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Its name, by which the audit knows what is done with it: lower-case letters, digits, dots, hyphens and underscores, at most 63.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The jobs that it may change: `billing.*` by the beginning of their names, or `team=billing` by a label; all if absent. Not for an
    /// admin.
    #[schema(max_length = 300)]
    pub only_jobs: Option<String>,
    /// How long it is accepted, in seconds, at most 3,650 days; until it is revoked if absent.
    #[schema(minimum = 1, maximum = 315_360_000)]
    pub valid_for_s: Option<u64>,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    pub reason: Option<String>,
}

/// A token that was created.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedToken {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Its text, which is stored nowhere and shown this once.
    pub token: String,
}

/// Lists tokens, without their secrets.
///
/// Those that are accepted by name, and then the others, the latest revoked first.
#[utoipa::path(get, path = "/tokens", tag = "access", operation_id = "list_tokens", extensions(("x-role" = json!("admin"))),
    responses((status = 200, description = "The tokens.", body = Items<Token>)))]
pub async fn list(allowed: Allowed<Admin>) -> Result<Json<Items<Token>>, Problem> {
    Ok(Json(Items { items: tokens::list(allowed.reads()).await? }))
}

/// Creates a token.
#[utoipa::path(post, path = "/tokens", tag = "access", operation_id = "create_token", extensions(("x-role" = json!("admin"))),
    request_body = CreateToken,
    responses((status = 201, description = "The token, shown this once.", body = CreatedToken)))]
pub async fn create(
    allowed: Allowed<Admin>,
    Body(new): Body<CreateToken>,
) -> Result<(StatusCode, Extension<NotKept>, Json<CreatedToken>), Problem> {
    let CreateToken { name, role, only_jobs, valid_for_s, reason } = new;
    let grant = super::grant(role, only_jobs.as_deref())?;
    let (valid_for, reason) = (valid_for_s.map(Duration::from_secs), reason.as_deref());
    let store = allowed.writes();
    let created = tokens::create(&store, &name, grant, valid_for, allowed.actor(), reason).await;
    let in_body = |error| Problem::from(error).in_body(&[("valid_for", "valid_for_s")]);
    let token = created.map_err(in_body)?;
    Ok((StatusCode::CREATED, Extension(NotKept), Json(CreatedToken { name, role, token })))
}

/// Revokes a token: its next request is refused.
#[utoipa::path(delete, path = "/tokens/{name}", tag = "access", operation_id = "revoke_token",
    extensions(("x-role" = json!("admin"))),
    params(("name" = String, Path, description = "The token's name."), Reason),
    responses((status = 204, description = "It is revoked.")))]
pub async fn revoke(
    allowed: Allowed<Admin>,
    Path(name): Path<String>,
    Query(Reason { reason }): Query<Reason>,
) -> Result<StatusCode, Problem> {
    tokens::revoke(&allowed.writes(), &name, allowed.actor(), reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
