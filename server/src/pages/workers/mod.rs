//! `/workers`: the processes, what each runs, and the pools that they serve.

mod list;
mod show;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;

use super::shell::visit::{Site, Visit};
use crate::access::Viewer;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/workers", get(list::list))
        .route("/workers/{name}", get(show::show))
        .route("/pools", get(to_workers))
}

/// `/pools`: the page of the workers begins with the pools.
async fn to_workers(visit: Visit<Viewer>) -> Redirect {
    Redirect::permanent(&visit.url("/workers"))
}
