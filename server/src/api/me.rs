//! Who sends a request.

use axum::Json;
use serde::Serialize;
use sexton_model::access::Role;
use utoipa::ToSchema;

use crate::access::{Allowed, Viewer};

/// Who sends a request, and what it may do.
#[derive(Debug, Serialize, ToSchema)]
pub struct Me {
    /// The name in the audit.
    pub name: String,
    /// What it may do.
    pub role: Role,
}

/// Shows who you are.
#[utoipa::path(get, path = "/me", tag = "access", operation_id = "show_me", extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "Who sends this request.", body = Me)))]
pub async fn show(allowed: Allowed<Viewer>) -> Json<Me> {
    let caller = allowed.caller();
    Json(Me { name: caller.name.clone(), role: caller.role })
}
