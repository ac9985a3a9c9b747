//! The path below which a proxy shows the server, such as `/sexton`.
//!
//! Every address that the server writes begins with it. A request may have it or not: some proxies pass a path on as it is, others remove
//! what they were configured for.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

/// Returns a router that answers as `router` does, with the base path and without. `base`: empty, or with a slash before and none behind it.
pub fn below(base: Arc<str>, router: Router) -> Router {
    if base.is_empty() {
        return router;
    }
    // Around it, so that it chooses the route by what is left of the path.
    Router::new().fallback_service(router).layer(from_fn_with_state(base, remove))
}

async fn remove(State(base): State<Arc<str>>, mut request: Request, next: Next) -> Response {
    if let Some(uri) = without(&base, request.uri()) {
        *request.uri_mut() = uri;
    }
    next.run(request).await
}

/// Returns an address without the base path; `None`: it does not begin with it.
fn without(base: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(base)?;
    let rest = match rest.as_bytes().first() {
        Some(b'/') => rest.to_owned(),
        None | Some(b'?') => format!("/{rest}"),
        Some(_) => return None,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(rest).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_loses_its_base_and_nothing_else() {
        let rest = |uri: &str| without("/a/b", &uri.parse().unwrap()).map(|uri| uri.to_string());
        for (uri, expected) in [
            ("/a/b", Some("/")),
            ("/a/b/", Some("/")),
            ("/a/b?x=1", Some("/?x=1")),
            ("/a/b/jobs/a.b?x=%2Fa%2Fb", Some("/jobs/a.b?x=%2Fa%2Fb")),
            ("/a/b/a/b", Some("/a/b")),
            ("http://host/a/b/jobs", Some("http://host/jobs")),
            ("/a/bc", None),
            ("/a", None),
            ("/x/a/b", None),
        ] {
            assert_eq!(rest(uri).as_deref(), expected, "{uri}");
        }
    }
}
