//! `/`: what a person on call needs in ten seconds.

mod chart;
mod density;
mod show;
mod tiles;

use axum::routing::get;
use axum::{Extension, Router};

use self::density::DensityCache;
use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new().route("/", get(show::show).layer(Extension(DensityCache::default())))
}
