//! `/me`: who you are and what you may do.

mod show;

use axum::Router;
use axum::routing::get;

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new().route("/me", get(show::show))
}
