//! `/failed`: failed executions, their groups, and what people do about them.

mod actions;
mod edit;
mod group_list;
mod groups;
mod list;
mod show;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/failed", get(list::list))
        .route("/failed/groups", get(group_list::show))
        .route("/failed/groups/{fingerprint}", get(groups::show).post(groups::remark))
        .route("/failed/{id}", get(show::show))
        .route("/failed/{id}/edit", get(edit::show).post(edit::change))
        .route("/failed/{id}/requeue", post(actions::requeue))
        .route("/failed/{id}/discard", post(actions::discard))
        .route("/failed/{id}/restore", post(actions::restore))
}
