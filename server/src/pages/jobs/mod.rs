//! `/jobs`: what fires when, what became of each firing, and what people do about it.

mod actions;
mod backfill;
mod list;
mod recent;
mod schedule;
mod show;
mod strip;
mod trigger;
mod trigger_many;
mod upcoming;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/jobs", get(list::list))
        .route("/jobs:trigger", get(trigger_many::preview).post(trigger_many::run))
        .route("/jobs/{name}", get(show::show))
        .route("/jobs/{name}/trigger", get(trigger::form).post(trigger::run))
        .route("/jobs/{name}/pause", post(actions::pause))
        .route("/jobs/{name}/resume", post(actions::resume))
        .route("/jobs/{name}/backfill", get(backfill::preview).post(backfill::run))
}
