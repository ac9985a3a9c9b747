//! The caller of a request: the name, the role and the password.

use axum::Json;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sexton_model::access::Role;
use sexton_model::job_scope::JobScope;
use sexton_operations::passwords::Password;
use utoipa::ToSchema;

use super::extract::Body;
use super::problem_of_field;
use crate::access::client::Client;
use crate::access::session::{self, LogInRefusal, SetCookie};
use crate::access::{Allowed, Caller, CallerKind, Viewer};
use crate::problem::Problem;

/// The caller of a request, and what it may do.
#[derive(Debug, Serialize, ToSchema)]
pub struct Me {
    /// The name in the audit: `token NAME`, `account NAME`, `oidc NAME`, `proxy NAME` or `local`.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The jobs that it may change, such as `billing.*` or `team=billing`; null: all.
    #[schema(value_type = Option<String>)]
    pub only_jobs: Option<JobScope>,
    /// How that is known.
    pub how: CallerKind,
    /// When its session ends in any case; null without a session.
    pub session_expires_at: Option<DateTime<Utc>>,
}

/// Shows who you are.
#[utoipa::path(get, path = "/me", tag = "access", operation_id = "show_me", extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "The caller of this request.", body = Me)))]
pub async fn show(allowed: Allowed<Viewer>) -> Json<Me> {
    let Caller { name, role, only_jobs, kind, session_expires_at, .. } = allowed.caller().clone();
    Json(Me { name, role, only_jobs, how: kind, session_expires_at })
}

/// A new password of the account that is logged in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplacePassword {
    /// The password so far.
    #[schema(value_type = String, format = Password)]
    pub current: Password,
    /// The password from now on: at least 12 characters, at most 256 bytes.
    #[schema(value_type = String, format = Password, min_length = 12, max_length = 256)]
    pub password: Password,
}

/// Changes your password, as the account that is logged in.
///
/// All its sessions end, and the answer sets the cookie of a new one. A wrong current password counts like a failed log-in.
#[utoipa::path(post, path = "/me/password", tag = "access", operation_id = "replace_password", extensions(("x-role" = json!("viewer"))),
    request_body = ReplacePassword,
    responses((status = 204, description = "You have that password, and a new session.")))]
pub async fn replace_password(
    allowed: Allowed<Viewer>,
    client: Client,
    Body(ReplacePassword { current, password }): Body<ReplacePassword>,
) -> Result<(SetCookie, StatusCode), Problem> {
    match session::replace_password(&allowed, &client, &current, &password).await {
        Ok(cookie) => Ok((cookie, StatusCode::NO_CONTENT)),
        // The session is accepted all the same.
        Err(LogInRefusal::Wrong) => {
            Err(problem_of_field("/current", "is not the password of this account"))
        }
        Err(refusal) => Err(Problem::from(refusal).in_body(&[])),
    }
}
