//! `/audit`: what people did, when, from where, and why.

mod list;

use axum::Router;
use axum::routing::get;

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new().route("/audit", get(list::list))
}
