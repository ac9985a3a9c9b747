//! Sessions of people who log in with an account.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use sexton_operations::passwords::Password;
use utoipa::ToSchema;

use super::extract::Body;
use crate::access::client::Client;
use crate::access::same_origin::refuse_other_sites;
use crate::access::session::{self, SetCookie};
use crate::access::{Allowed, Backend, Viewer};
use crate::problem::{Problem, ProblemCode};

/// Where people log in and out.
pub(super) const PATH: &str = "/session";

/// An account that logs in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    /// The account's name.
    pub name: String,
    /// Its password.
    #[schema(value_type = String, format = Password)]
    pub password: Password,
}

/// Logs in with an account.
///
/// The answer sets a cookie, which browsers send with each further request. Programs use tokens instead.
#[utoipa::path(post, path = "/session", tag = "access", operation_id = "log_in", extensions(("x-role" = json!("none"))),
    security(()), request_body = LogIn,
    responses((status = 204, description = "You are logged in, by the cookie of the answer.")))]
pub async fn log_in(
    State(backend): State<Backend>,
    client: Client,
    headers: HeaderMap,
    Body(LogIn { name, password }): Body<LogIn>,
) -> Result<(SetCookie, StatusCode), Problem> {
    refuse_other_sites(&headers)?;
    let cookie = session::log_in(&backend, &client, &headers, (&name, &password)).await?;
    Ok((cookie, StatusCode::NO_CONTENT))
}

/// Logs out: ends the session of this request.
#[utoipa::path(delete, path = "/session", tag = "access", operation_id = "log_out", extensions(("x-role" = json!("viewer"))),
    responses((status = 204, description = "The session has ended, and the answer removes its cookie.")))]
pub async fn log_out(
    allowed: Allowed<Viewer>,
    State(backend): State<Backend>,
    client: Client,
    headers: HeaderMap,
) -> Result<(SetCookie, StatusCode), Problem> {
    if allowed.caller().session_expires_at.is_none() {
        let detail = format!("{} has no session that could end", allowed.caller().name);
        return Err(Problem::new(StatusCode::CONFLICT, ProblemCode::Conflict, detail));
    }
    let cookie = session::log_out(&backend, &client, &headers).await?;
    Ok((cookie, StatusCode::NO_CONTENT))
}
