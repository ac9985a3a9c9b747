//! `/`: what a person on call needs in ten seconds; and `/upcoming`: what fires at a time that stands out there.

mod count_cache;
mod doctor;
mod heat;
mod part;
mod show;
mod tiles;

use axum::routing::get;
use axum::{Extension, Router};

use self::count_cache::CountCache;
use super::shell::visit::Site;
use crate::api::examination::Examiner;

/// Returns the routes; `examiner` is also that of the API.
pub(super) fn routes(examiner: Examiner) -> Router<Site> {
    Router::new()
        .route("/", get(show::show))
        .route("/upcoming", get(part::show))
        .layer(Extension(CountCache::of_density()))
        .layer(Extension(CountCache::of_due()))
        .layer(Extension(examiner))
}
