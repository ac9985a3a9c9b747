//! Requests from a browser or program on the same machine, which need no token if the settings say so.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{FORWARDED, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, Version};

use super::same_origin::SEC_FETCH_SITE;

/// Headers by which proxies say that a request comes from elsewhere, besides those that begin with [`PROXY_PREFIX`].
const PROXY_HEADERS: [HeaderName; 3] =
    [FORWARDED, HeaderName::from_static("via"), HeaderName::from_static("x-real-ip")];
const PROXY_PREFIX: &str = "x-forwarded-";

/// Returns whether a request was made on this machine, and by nobody else's page: neither by a proxy, nor under a name that
/// leads here (DNS rebinding), nor by a page of another site.
pub(super) fn is_local(peer: IpAddr, version: Version, headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(&HOST);
    let is_same_site =
        text(&SEC_FETCH_SITE).is_none_or(|site| site == "same-origin" || site == "none");
    let is_same_origin = headers.get(ORIGIN).is_none_or(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        origin.is_some() && origin == host
    });
    peer.to_canonical().is_loopback()
        && !is_by_proxy(version, headers)
        && headers.get_all(HOST).iter().count() == 1
        && host.is_some_and(names_this_machine)
        && is_same_site
        && is_same_origin
}

/// Returns whether a proxy sends a request, as far as that shows. Proxies that say nothing mostly speak HTTP/1.0, which no browser does; one
/// that forwards bytes looks like a client.
pub(super) fn is_by_proxy(version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_10
        || PROXY_HEADERS.iter().any(|name| headers.contains_key(name))
        || headers.keys().any(|name| name.as_str().starts_with(PROXY_PREFIX))
}

/// Whether `host`, with a port or not, can name no other machine.
pub(super) fn names_this_machine(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return address.is_loopback();
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(peer: &str, headers: &[(&str, &str)]) -> bool {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        is_local(peer.parse().unwrap(), Version::HTTP_11, &all)
    }

    #[test]
    fn a_request_of_this_machine_is_local() {
        for host in
            ["127.0.0.1:8420", "localhost:8420", "LocalHost", "[::1]:8420", "[::1]", "127.1.2.3"]
        {
            assert!(is("127.0.0.1", &[("host", host)]), "{host}");
        }
        assert!(is("::1", &[("host", "localhost")]));
        assert!(is("::ffff:127.0.0.1", &[("host", "localhost")]));
        let same = [("host", "127.0.0.1:8420"), ("origin", "http://127.0.0.1:8420")];
        assert!(is("127.0.0.1", &same));
        assert!(is("127.0.0.1", &[same[0], ("sec-fetch-site", "same-origin")]));
        assert!(is("127.0.0.1", &[same[0], ("sec-fetch-site", "none")]));
    }

    #[test]
    fn a_request_that_may_come_from_elsewhere_is_not() {
        let host = ("host", "127.0.0.1:8420");
        assert!(!is("10.0.0.7", &[host]), "another machine");
        assert!(!is("127.0.0.1", &[]), "no host");
        for name in [
            "sexton.example.com",
            "rebound.example.com:8420",
            "127.0.0.1.example.com",
            "localhost.example",
            "",
        ] {
            assert!(!is("127.0.0.1", &[("host", name)]), "{name}");
        }
        let headers = [(HOST, "localhost".parse().unwrap())].into_iter().collect();
        assert!(!is_local([127, 0, 0, 1].into(), Version::HTTP_10, &headers), "a plain proxy");
        assert!(!is("127.0.0.1", &[host, ("host", "localhost")]), "two hosts");
        for proxy in ["forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-real-ip"] {
            assert!(!is("127.0.0.1", &[host, (proxy, "10.0.0.7")]), "{proxy}");
        }
        for site in ["cross-site", "same-site"] {
            assert!(!is("127.0.0.1", &[host, ("sec-fetch-site", site)]), "{site}");
        }
        for origin in
            ["http://evil.example", "null", "https://127.0.0.1:8420", "http://127.0.0.1:9000"]
        {
            assert!(!is("127.0.0.1", &[host, ("origin", origin)]), "{origin}");
        }
    }
}
