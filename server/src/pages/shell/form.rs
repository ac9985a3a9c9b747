//! Reads the bodies of forms.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::query::without_empty;
use super::refusal::Refusal;
use super::visit::Site;
use crate::api::read_query;
use crate::problem::{Problem, ProblemCode};

/// A form that a browser sent. A field may be repeated if its type is a list; one that was left empty counts as absent, and one that is
/// unknown is refused.
#[derive(Clone, Copy, Debug)]
pub(in crate::pages) struct Form<T>(pub(in crate::pages) T);

impl<T: DeserializeOwned> FromRequest<Site> for Form<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, site: &Site) -> Result<Self, Refusal> {
        let path = format!("{}{}", site.base, request.uri());
        let refuse = |problem| Refusal::new(problem, site, path.clone());
        let bytes = Bytes::from_request(request, site).await.map_err(|rejection| {
            refuse(Problem::new(rejection.status(), ProblemCode::Invalid, rejection.body_text()))
        })?;
        read_query(&without_empty(&String::from_utf8_lossy(&bytes))).map(Self).map_err(refuse)
    }
}
