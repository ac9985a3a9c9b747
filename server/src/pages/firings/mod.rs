//! `/firings`: what did not run, over all jobs, and why.

mod list;

use axum::Router;
use axum::routing::get;

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new().route("/firings", get(list::list))
}
