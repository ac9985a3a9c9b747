//! `/monitors` and `/checks`: what is watched of the platform's jobs, and of jobs that run elsewhere.

mod checks;
mod jobs;
mod show_check;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/monitors", get(jobs::list))
        .route("/checks", get(checks::list))
        .route("/checks/{name}", get(show_check::show))
        .route("/checks/{name}/pause", post(show_check::pause))
        .route("/checks/{name}/resume", post(show_check::resume))
}
