//! `/me`: who you are and what you may do; and the tokens, for those who decide about them.

mod show;
mod tokens;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/me", get(show::show))
        .route("/me/tokens", get(tokens::list).post(tokens::create))
        .route("/me/tokens/{name}/revoke", post(tokens::revoke))
}
