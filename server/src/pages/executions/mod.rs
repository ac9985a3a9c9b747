//! `/executions`: what ran, runs and will run.

mod actions;
mod list;
mod output;
mod show;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/executions", get(list::list))
        .route("/executions/{id}", get(show::show))
        .route("/executions/{id}/cancel", post(actions::cancel))
        .route("/executions/{id}/run-again", post(actions::run_again))
}
