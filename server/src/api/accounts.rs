//! Accounts by which people log in.

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use sexton_model::access::Role;
use sexton_model::job_scope::ScopeChange;
use sexton_operations::accounts::{self, Account};
use sexton_operations::passwords::Password;
use utoipa::ToSchema;

use super::extract::{Body, Path};
use super::{Items, ReasonBody};
use crate::access::{Admin, Allowed};
use crate::problem::Problem;

/// An account to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAccount {
    /// Its name, by which the person logs in and the audit knows what is done with it: lower-case letters, digits, dots, hyphens and
    /// underscores, at most 63.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The jobs that it may change: `billing.*` by the beginning of their names, or `team=billing` by a label; all if absent. Not for an
    /// admin.
    #[schema(max_length = 300)]
    pub only_jobs: Option<String>,
    /// Its password: at least 12 characters, at most 256 bytes.
    #[schema(value_type = String, format = Password, min_length = 12, max_length = 256)]
    pub password: Password,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    pub reason: Option<String>,
}

/// Another password.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPassword {
    /// The password: at least 12 characters, at most 256 bytes.
    #[schema(value_type = String, format = Password, min_length = 12, max_length = 256)]
    pub password: Password,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    pub reason: Option<String>,
}

/// Another role.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRole {
    /// What the account may do from now on.
    pub role: Role,
    /// The jobs that it may change: `billing.*` by the beginning of their names, or `team=billing` by a label; null: all, as an admin has
    /// to; as before if absent.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 300)]
    pub only_jobs: ScopeField,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    pub reason: Option<String>,
}

/// Whose sessions to end.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndSessions {
    /// As the audit names them: `account NAME` or `oidc NAME`.
    pub name: String,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    pub reason: Option<String>,
}

/// A field that says something else by its absence than by null.
#[derive(Debug, Default)]
pub enum ScopeField {
    /// It is absent.
    #[default]
    Absent,
    /// It is given, perhaps as null.
    Given(Option<String>),
}

fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ScopeField, D::Error> {
    Option::deserialize(deserializer).map(ScopeField::Given)
}

/// What a change of an account ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangedAccount {
    /// The account's name, or what the request has named.
    pub name: String,
    /// Its sessions that have ended.
    pub ended_sessions: u64,
}

/// Lists accounts.
///
/// Those that are enabled by name, and then the others.
#[utoipa::path(get, path = "/accounts", tag = "access", operation_id = "list_accounts", extensions(("x-role" = json!("admin"))),
    responses((status = 200, description = "The accounts.", body = Items<Account>)))]
pub async fn list(allowed: Allowed<Admin>) -> Result<Json<Items<Account>>, Problem> {
    Ok(Json(Items { items: accounts::list(allowed.reads()).await? }))
}

/// Creates an account.
#[utoipa::path(post, path = "/accounts", tag = "access", operation_id = "create_account", extensions(("x-role" = json!("admin"))),
    request_body = CreateAccount,
    responses((status = 204, description = "The account exists.")))]
pub async fn create(
    allowed: Allowed<Admin>,
    Body(new): Body<CreateAccount>,
) -> Result<StatusCode, Problem> {
    let CreateAccount { name, role, only_jobs, password, reason } = new;
    let grant = super::grant(role, only_jobs.as_deref())?;
    let (store, actor) = (allowed.writes(), allowed.actor());
    let created = accounts::create(&store, &name, grant, &password, actor, reason.as_deref()).await;
    created.map_err(|error| Problem::from(error).in_body(&[]))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives an account another password, and ends its sessions.
#[utoipa::path(post, path = "/accounts/{name}/password", tag = "access", operation_id = "set_account_password",
    extensions(("x-role" = json!("admin"))), request_body = SetPassword,
    params(("name" = String, Path, description = "The account's name.")),
    responses((status = 200, description = "It has that password.", body = ChangedAccount)))]
pub async fn set_password(
    allowed: Allowed<Admin>,
    Path(name): Path<String>,
    Body(SetPassword { password, reason }): Body<SetPassword>,
) -> Result<Json<ChangedAccount>, Problem> {
    let (store, actor) = (allowed.writes(), allowed.actor());
    let set = accounts::set_password(&store, &name, &password, actor, reason.as_deref()).await;
    let ended_sessions = set.map_err(|error| Problem::from(error).in_body(&[]))?;
    Ok(Json(ChangedAccount { name, ended_sessions }))
}

/// Gives an account another role, and ends its sessions.
#[utoipa::path(post, path = "/accounts/{name}/role", tag = "access", operation_id = "set_account_role",
    extensions(("x-role" = json!("admin"))), request_body = SetRole,
    params(("name" = String, Path, description = "The account's name.")),
    responses((status = 200, description = "It has that role.", body = ChangedAccount)))]
pub async fn set_role(
    allowed: Allowed<Admin>,
    Path(name): Path<String>,
    Body(SetRole { role, only_jobs, reason }): Body<SetRole>,
) -> Result<Json<ChangedAccount>, Problem> {
    let only_jobs = match only_jobs {
        ScopeField::Absent => ScopeChange::Keep,
        ScopeField::Given(only) => ScopeChange::To(super::job_scope(only.as_deref())?),
    };
    let (store, actor) = (allowed.writes(), allowed.actor());
    let change = (role, &only_jobs);
    let set = accounts::set_role(&store, &name, change, actor, reason.as_deref()).await;
    let ended_sessions = set.map_err(|error| Problem::from(error).in_body(&[]))?;
    Ok(Json(ChangedAccount { name, ended_sessions }))
}

/// Lets nobody log in with an account any more, and ends its sessions.
#[utoipa::path(post, path = "/accounts/{name}/disable", tag = "access", operation_id = "disable_account",
    extensions(("x-role" = json!("admin"))), request_body = ReasonBody,
    params(("name" = String, Path, description = "The account's name.")),
    responses((status = 200, description = "It is disabled.", body = ChangedAccount)))]
pub async fn disable(
    allowed: Allowed<Admin>,
    Path(name): Path<String>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<ChangedAccount>, Problem> {
    let (store, actor) = (allowed.writes(), allowed.actor());
    let ended_sessions = accounts::disable(&store, &name, actor, reason.as_deref()).await?;
    Ok(Json(ChangedAccount { name, ended_sessions }))
}

/// Ends all sessions of an account, or of a person whom the identity provider named.
///
/// The person can log in again, as far as the provider lets them: let it refuse the person first.
#[utoipa::path(post, path = "/accounts/end-sessions", tag = "access", operation_id = "end_sessions",
    extensions(("x-role" = json!("admin"))), request_body = EndSessions,
    responses((status = 200, description = "They have ended.", body = ChangedAccount)))]
pub async fn end_sessions(
    allowed: Allowed<Admin>,
    Body(EndSessions { name, reason }): Body<EndSessions>,
) -> Result<Json<ChangedAccount>, Problem> {
    let (store, actor) = (allowed.writes(), allowed.actor());
    let ended = accounts::end_sessions(&store, &name, actor, reason.as_deref()).await;
    let ended_sessions = ended.map_err(|error| Problem::from(error).in_body(&[]))?;
    Ok(Json(ChangedAccount { name, ended_sessions }))
}

/// Lets people log in with an account again.
#[utoipa::path(post, path = "/accounts/{name}/enable", tag = "access", operation_id = "enable_account",
    extensions(("x-role" = json!("admin"))), request_body = ReasonBody,
    params(("name" = String, Path, description = "The account's name.")),
    responses((status = 204, description = "It is enabled.")))]
pub async fn enable(
    allowed: Allowed<Admin>,
    Path(name): Path<String>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<StatusCode, Problem> {
    accounts::enable(&allowed.writes(), &name, allowed.actor(), reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
