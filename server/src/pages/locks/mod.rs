//! `/locks`: who holds or waits for which lock of a job or service.

mod list;

use axum::Router;
use axum::routing::get;

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new().route("/locks", get(list::list))
}
