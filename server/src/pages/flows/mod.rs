//! `/flows`: executions that depend on one another.

mod list;
mod show;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/flows", get(list::list))
        .route("/flows/{id}", get(show::show))
        .route("/flows/{id}/cancel", post(show::cancel))
}
