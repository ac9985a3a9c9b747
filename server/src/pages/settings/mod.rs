//! `/settings`: what holds for this server; and, for those who decide about them, the accounts of people and the tokens of programs.

mod accounts;
mod show;
mod tokens;

use axum::Router;
use axum::routing::{get, post};

use super::shell::visit::Site;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/settings", get(show::show))
        .route("/settings/tokens", get(tokens::list).post(tokens::create))
        .route("/settings/tokens/{name}/revoke", post(tokens::revoke))
        .route("/settings/accounts", get(accounts::list).post(accounts::create))
        .route("/settings/accounts/{name}/role", post(accounts::set_role))
        .route("/settings/accounts/{name}/password", post(accounts::set_password))
        .route("/settings/accounts/{name}/disable", post(accounts::disable))
        .route("/settings/accounts/{name}/enable", post(accounts::enable))
}
