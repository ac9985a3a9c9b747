//! `/approvals`: actions that wait for another person, what each would do, and what became of others.

mod actions;
mod list;
mod show;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/approvals", get(list::list))
        .route("/approvals/{id}", get(show::show))
        .route("/approvals/{id}/approve", post(actions::approve))
        .route("/approvals/{id}/reject", post(actions::reject))
}
