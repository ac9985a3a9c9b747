//! `/incidents`: what is wrong, and who responds.

mod actions;
mod causes;
mod list;
mod show;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/incidents", get(list::list))
        .route("/incidents/{id}", get(show::show))
        .route("/incidents/{id}/acknowledge", post(actions::acknowledge))
        .route("/incidents/{id}/silence", post(actions::silence))
        .route("/incidents/{id}/unsilence", post(actions::unsilence))
        .route("/incidents/{id}/resolve", post(actions::resolve))
}
