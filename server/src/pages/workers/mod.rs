//! `/workers`: the processes, what each runs, and the pools that they serve.

mod list;
mod show;

use axum::Router;
use axum::routing::get;

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new().route("/workers", get(list::list)).route("/workers/{name}", get(show::show))
}
