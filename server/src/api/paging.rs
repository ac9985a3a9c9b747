//! Pages of lists: `Link` headers (RFC 8288) lead from one to the next.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::LINK;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use sexton_operations::paging::{Cursor, Page};
use url::form_urlencoded::parse;

/// A page, with a `Link` to the next one.
#[derive(Clone, PartialEq, Debug)]
pub struct Paged<T>(pub Page<T>);

/// The cursor of an answer's next page.
#[derive(Clone, Debug)]
pub struct NextPage(Cursor);

/// Marks an answer that has a next page.
pub fn next_page(cursor: Option<&Cursor>) -> Option<Extension<NextPage>> {
    cursor.map(|cursor| Extension(NextPage(cursor.clone())))
}

impl<T: Serialize> IntoResponse for Paged<T> {
    fn into_response(self) -> Response {
        (next_page(self.0.next_cursor.as_ref()), Json(self.0)).into_response()
    }
}

/// Adds the links of a page. They are relative, so that they are true behind every proxy.
pub(super) async fn linked(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let mut response = next.run(request).await;
    let next = response.extensions_mut().remove::<NextPage>();
    let mut links = Vec::new();
    if response.status().is_success() && query.split('&').any(is_cursor) {
        links.push(format!("<{}>; rel=\"first\"", reference(&query, None)));
    }
    if let Some(NextPage(cursor)) = next {
        links.push(format!("<{}>; rel=\"next\"", reference(&query, Some(&cursor.to_string()))));
    }
    if let Ok(link) = HeaderValue::try_from(links.join(", "))
        && !links.is_empty()
    {
        response.headers_mut().insert(LINK, link);
    }
    response
}

/// However it is escaped: `%63ursor` is read as `cursor`.
fn is_cursor(pair: &str) -> bool {
    parse(pair.as_bytes()).any(|(name, _)| name == "cursor")
}

/// The same query with another cursor, or with none. Neither a query nor a cursor has a character that ends a link.
fn reference(query: &str, cursor: Option<&str>) -> String {
    let others = query.split('&').filter(|pair| !pair.is_empty() && !is_cursor(pair));
    let cursor = cursor.map(|cursor| format!("cursor={cursor}"));
    format!("?{}", others.chain(cursor.as_deref()).collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_the_same_query_with_the_next_cursor() {
        assert_eq!(reference("", Some("abc")), "?cursor=abc");
        let query = "limit=2&cursor=old&label=a%3Db";
        assert_eq!(reference(query, Some("abc")), "?limit=2&label=a%3Db&cursor=abc");
        assert_eq!(reference(query, None), "?limit=2&label=a%3Db");
        assert_eq!(reference("%63ursor=old&limit=2", Some("abc")), "?limit=2&cursor=abc");
    }
}
