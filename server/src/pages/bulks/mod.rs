//! `/bulks`: actions on many executions at once, how far they are, and what they left.

mod actions;
mod form;
mod items;
mod list;
mod request;
mod show;
mod words;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/bulks", get(list::list))
        .route("/failed/bulk", get(request::preview_failed).post(request::create_failed))
        .route(
            "/executions/bulk",
            get(request::preview_executions).post(request::create_executions),
        )
        .route("/bulks/{id}", get(show::show))
        .route("/bulks/{id}/stop", post(actions::stop))
        .route("/bulks/{id}/resume", post(actions::resume))
}
