//! `http = { url = "…", … }`: a request.

use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use sexton_model::quoting;
use sexton_model::target_url::http_url;
use sexton_outbound::address::blocked_kind;
use sexton_outbound::http::{HeaderName, HeaderValue, Host, Method, Url};

use super::fields::{Fields, Notes};
use super::value;
use crate::executor::http::{HttpTask, is_reserved_header};
use sexton_outbound::secret::Value;

/// Longest URL, in bytes.
const URL_MAX_BYTES: usize = 2_000;

const METHODS: [Method; 6] =
    [Method::DELETE, Method::GET, Method::HEAD, Method::PATCH, Method::POST, Method::PUT];

/// Most headers of a request.
pub const HEADERS_MAX: usize = 50;

/// Longest value of a header, in bytes.
const HEADER_MAX_BYTES: usize = 8 * 1024;

const TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// The default timeout of a request.
pub const HTTP_TIMEOUT_DEFAULT: Duration = Duration::from_mins(1);

/// How much of a response body is read by default, in bytes.
pub const RESPONSE_DEFAULT: u64 = 64 * 1024;
/// The highest limit for a response body, in bytes.
pub const RESPONSE_MAX: u64 = 16 * 1024 * 1024;

/// The most hosts in `allow`.
const ALLOW_MAX: usize = 16;

/// Reads a request; notes every problem. `None` without a valid URL.
pub(super) fn read(fields: Fields<'_>, folder: &Path, notes: &mut Notes<'_>) -> Option<HttpTask> {
    let section = fields.table("http", "http.", notes)?;
    section.check_keys(&["url", "method", "headers", "timeout", "max_response", "allow"], notes);
    if !section.has("url") {
        fields.report("http", "needs a `url`", notes);
    }
    let url = section.text("url", URL_MAX_BYTES, notes).and_then(|text| match http_url(text) {
        Ok(url) => Some(url),
        Err(message) => {
            section.report("url", message, notes);
            None
        }
    });
    let method = method(section, notes);
    let headers = headers(section, folder, notes);
    let timeout = section.span("timeout", TIMEOUT_MIN..=super::TIMEOUT_MAX, notes);
    let max_response = section.size("max_response", 0..=RESPONSE_MAX, notes);
    let allow = section.texts("allow", ALLOW_MAX, notes);
    let url = url?;
    let allowed = allowed(&url, &allow, section, notes);
    Some(HttpTask {
        url,
        method,
        headers,
        timeout: timeout.unwrap_or(HTTP_TIMEOUT_DEFAULT),
        max_response: usize::try_from(max_response.unwrap_or(RESPONSE_DEFAULT)).unwrap_or(0),
        allowed,
    })
}

fn method(section: Fields<'_>, notes: &mut Notes<'_>) -> Method {
    let Some(value) = section.get("method") else { return Method::POST };
    let method = value.get_ref().as_str();
    let method = method.and_then(|text| METHODS.into_iter().find(|method| method.as_str() == text));
    if method.is_none() {
        section.report("method", "must be DELETE, GET, HEAD, PATCH, POST or PUT", notes);
    }
    method.unwrap_or_default()
}

fn headers(section: Fields<'_>, folder: &Path, notes: &mut Notes<'_>) -> Vec<(HeaderName, Value)> {
    let Some(table) = section.table("headers", "http.headers.", notes) else { return Vec::new() };
    let mut headers: Vec<(HeaderName, Value)> = Vec::new();
    for (key, found) in table.entries() {
        let place = table.name(key.get_ref());
        let mut report =
            |span: Range<usize>, message: &str| notes.problem(Some(span), Some(&place), message);
        let Ok(name) = HeaderName::from_bytes(key.get_ref().as_bytes()) else {
            report(key.span(), "is no name of a header");
            continue;
        };
        if is_reserved_header(&name) {
            report(key.span(), "is a header that the request has of itself");
        }
        if headers.iter().any(|(other, _)| *other == name) {
            report(key.span(), "is the same header once more: their case does not matter");
        }
        if headers.len() == HEADERS_MAX {
            report(key.span(), &format!("is one header too many: {HEADERS_MAX} are allowed"));
            break;
        }
        let Some(value) = value::read(found, &place, folder, notes) else { continue };
        let carried = match &value {
            Value::Plain(text) => {
                text.len() <= HEADER_MAX_BYTES && HeaderValue::from_str(text).is_ok()
            }
            Value::Secret(_) => true,
        };
        if !carried {
            let message = format!("must be visible ASCII, {HEADER_MAX_BYTES} bytes at most");
            notes.problem(Some(found.span()), Some(&place), message);
        }
        headers.push((name, value));
    }
    headers
}

/// Returns whether the URL's host is in `allow`. An entry that is not the URL's host would have no effect, so
/// it is reported as a mistake.
fn allowed(
    url: &Url,
    allow: &[(Range<usize>, &str)],
    section: Fields<'_>,
    notes: &mut Notes<'_>,
) -> bool {
    let host = url.host_str().unwrap_or_default();
    let mut allowed = false;
    for (span, host_name) in allow {
        // In the form that the URL has: lower case, international names encoded.
        let same = Host::parse(host_name).is_ok_and(|host_name| host_name.to_string() == host);
        allowed |= same;
        if !same {
            let message =
                format!("{} is not the host of `url`, {host}", quoting::quoted(host_name));
            notes.problem(Some(span.clone()), Some(&section.name("allow")), message);
        }
    }
    let literal = match url.host() {
        Some(Host::Ipv4(address)) => blocked_kind(IpAddr::from(address)),
        Some(Host::Ipv6(address)) => blocked_kind(IpAddr::from(address)),
        _ => None,
    };
    if let (Some(kind), false) = (literal, allowed) {
        let message = format!("{host} is {kind}: name it in `allow` to permit it");
        section.report("url", message, notes);
    }
    allowed
}
