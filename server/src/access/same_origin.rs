//! Requests that a browser sends on behalf of a page of another site.
//!
//! A browser adds a session's cookie to them, or a proxy its header, so the caller's identity is not enough. Browsers say which page a request
//! comes from, in headers that no page can set. A request without these headers is refused where it changes something: every browser that
//! is still maintained sends them.

use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};

use crate::problem::{Problem, ProblemCode};

pub(super) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The page that sends a request, as far as the headers name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// A page of this server, or the person by the address bar.
    Here,
    /// A page of another site.
    Elsewhere,
    /// No browser that is still maintained.
    Unknown,
}

fn source(headers: &HeaderMap) -> Source {
    let text =
        |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    // It tells HTTP from HTTPS and one port from another, which a proxy may hide.
    if let Some(site) = text(&SEC_FETCH_SITE) {
        let is_here = site == "same-origin" || site == "none";
        return if is_here { Source::Here } else { Source::Elsewhere };
    }
    let Some(origin) = text(&ORIGIN) else { return Source::Unknown };
    let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    match (authority, text(&HOST)) {
        (Some(authority), Some(host)) if authority.eq_ignore_ascii_case(host) => Source::Here,
        _ => Source::Elsewhere,
    }
}

/// Checks that a request which changes something comes from a page of this server.
///
/// # Errors
///
/// 403.
pub(super) fn check(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    match source(headers) {
        _ if *method == Method::GET || *method == Method::HEAD => Ok(()),
        Source::Here => Ok(()),
        Source::Elsewhere => Err(refuse("it comes from a page of another site")),
        Source::Unknown => Err(refuse(
            "nothing says which page it comes from; send `Origin`, or a token instead of a session",
        )),
    }
}

/// Checks that no page of another site sends a request that has no session yet, such as a log-in. Programs send no such headers.
///
/// # Errors
///
/// 403.
pub fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Problem> {
    match source(headers) {
        Source::Here | Source::Unknown => Ok(()),
        Source::Elsewhere => Err(refuse("it comes from a page of another site")),
    }
}

fn refuse(why: &str) -> Problem {
    let detail = format!("the request is refused: {why}");
    Problem::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&str, &str)]) -> Source {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap())
        });
        source(&headers.collect())
    }

    #[test]
    fn the_page_is_known_by_what_browsers_send() {
        let host = ("host", "sexton.example:8443");
        for site in ["same-origin", "none"] {
            assert_eq!(of(&[host, ("sec-fetch-site", site)]), Source::Here, "{site}");
        }
        for site in ["cross-site", "same-site", "", "Same-Origin"] {
            assert_eq!(of(&[host, ("sec-fetch-site", site)]), Source::Elsewhere, "{site}");
        }
        // It counts before an origin, which a proxy with another host name would break.
        let origin = ("origin", "https://public.example");
        assert_eq!(of(&[host, origin, ("sec-fetch-site", "same-origin")]), Source::Here);
        let origin = ("origin", "https://sexton.example:8443");
        assert_eq!(of(&[host, origin, ("sec-fetch-site", "cross-site")]), Source::Elsewhere);
        for origin in ["https://sexton.example:8443", "http://sexton.example:8443"] {
            assert_eq!(of(&[host, ("origin", origin)]), Source::Here, "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://sexton.example",
            "https://evil.example",
            "ftp://sexton.example:8443",
        ] {
            assert_eq!(of(&[host, ("origin", origin)]), Source::Elsewhere, "{origin}");
        }
        assert_eq!(of(&[("origin", "https://sexton.example")]), Source::Elsewhere);
        assert_eq!(of(&[host]), Source::Unknown);
    }
}
