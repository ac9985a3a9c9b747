//! What the routes of the API are registered with: with their descriptions, or without.
//!
//! All descriptions together take megabytes, which a process would keep. So a server registers the routes alone, and sends the committed
//! description, which a test compares with the code's.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::access::Backend;

/// Takes routes.
pub(super) trait Registry: Sized {
    /// Makes one without routes.
    fn empty() -> Self;

    /// Takes the handlers of a path.
    fn routes(self, handlers: UtoipaMethodRouter<Backend>) -> Self;

    /// Limits the bodies of the requests to the routes so far.
    fn limited_to(self, body_bytes: usize) -> Self;

    /// Takes the routes of another one.
    fn with(self, other: Self) -> Self;

    /// Puts a path before those of all routes so far.
    fn below(self, path: &str) -> Self;
}

impl Registry for OpenApiRouter<Backend> {
    fn empty() -> Self {
        Self::new()
    }

    fn routes(self, handlers: UtoipaMethodRouter<Backend>) -> Self {
        Self::routes(self, handlers)
    }

    fn limited_to(self, body_bytes: usize) -> Self {
        self.layer(DefaultBodyLimit::max(body_bytes))
    }

    fn with(self, other: Self) -> Self {
        self.merge(other)
    }

    fn below(self, path: &str) -> Self {
        Self::new().nest(path, self)
    }
}

impl Registry for Router<Backend> {
    fn empty() -> Self {
        Self::new()
    }

    fn routes(self, (_, paths, handlers): UtoipaMethodRouter<Backend>) -> Self {
        paths.paths.keys().fold(self, |router, path| router.route(path, handlers.clone()))
    }

    fn limited_to(self, body_bytes: usize) -> Self {
        self.layer(DefaultBodyLimit::max(body_bytes))
    }

    fn with(self, other: Self) -> Self {
        self.merge(other)
    }

    fn below(self, path: &str) -> Self {
        Self::new().nest(path, self)
    }
}
