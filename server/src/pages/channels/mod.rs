//! `/channels`: to whom notifications go, whether they arrive, and tests of that.

mod list;
mod test;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/channels", get(list::list))
        .route("/channels/{name}/test", post(test::test))
}
