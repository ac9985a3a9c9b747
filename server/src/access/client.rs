//! Where a request comes from: the address of its client, and whether it came by HTTPS.
//!
//! A proxy says both in headers. Everybody can send such headers, so they count only on connections from proxies that the settings name.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName};
use axum::http::request::Parts;
use sexton_model::access::Role;
use sexton_model::network::Network;
use sexton_service::http_server::Peer;

use super::{Backend, local};
use crate::problem::Problem;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Proxies before the server, and what they may say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProxySettings {
    /// The addresses of the proxies. Headers from other addresses are ignored.
    pub trusted: Vec<Network>,
    /// The header with the name of the person whom the proxy has logged in.
    pub user_header: Option<HeaderName>,
    /// The header with that person's role.
    pub role_header: Option<HeaderName>,
    /// The role of those without that header; `None`: they are refused.
    pub role: Option<Role>,
    /// Whether every client comes by HTTPS, whatever proxies say.
    pub is_behind_tls: bool,
}

impl ProxySettings {
    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }
}

/// Where a request comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Client {
    /// Its address, as far as it is known: the connection's, or the one for which trusted proxies forward.
    pub address: IpAddr,
    /// Whether it came by HTTPS.
    pub is_secure: bool,
    /// Whether it was sent to a name of this machine, and by no proxy, so that no network carries it.
    pub is_to_this_machine: bool,
    /// Whether a trusted proxy sent it.
    pub is_from_proxy: bool,
}

impl Client {
    /// Reads it from the head of a request; `None`: nobody knows the connection.
    pub fn of(parts: &Parts, backend: &Backend) -> Option<Self> {
        let headers = &parts.headers;
        let peer = parts.extensions.get::<Peer>()?.0.ip().to_canonical();
        let proxies = backend.proxies();
        let is_from_proxy = proxies.trusts(peer);
        let address = if is_from_proxy { forwarded_for(peer, headers, proxies) } else { peer };
        let is_forwarded_https =
            is_from_proxy && last_value(headers, &FORWARDED_PROTO) == Some("https");
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        Some(Self {
            address,
            is_secure: proxies.is_behind_tls || is_forwarded_https,
            is_to_this_machine: host.is_some_and(local::names_this_machine)
                && !local::is_by_proxy(parts.version, headers),
            is_from_proxy,
        })
    }

    /// Returns whether nobody on the way can read a password.
    pub const fn may_send_passwords(&self) -> bool {
        self.is_secure || self.is_to_this_machine
    }
}

impl FromRequestParts<Backend> for Client {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, backend: &Backend) -> Result<Self, Problem> {
        Self::of(parts, backend)
            .ok_or_else(|| Problem::unavailable("the server does not know where this comes from"))
    }
}

/// Goes back from the connection's peer to the first address that is no trusted proxy: each proxy adds the one that it has its request
/// from, and what stands before that is only what a client says.
fn forwarded_for(peer: IpAddr, headers: &HeaderMap, proxies: &ProxySettings) -> IpAddr {
    let values = headers.get_all(FORWARDED_FOR).iter().rev();
    let entries = values.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
    let mut address = peer;
    for entry in entries {
        let Some(before) = parse_entry(entry.trim()) else { break };
        address = before;
        if !proxies.trusts(address) {
            break;
        }
    }
    address
}

/// Some proxies add the port.
fn parse_entry(text: &str) -> Option<IpAddr> {
    let address = text.parse().ok();
    let address = address.or_else(|| text.parse().ok().map(|at: std::net::SocketAddr| at.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

fn last_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    value.rsplit(',').next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(peer: &str, forwarded: &[&str]) -> String {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap()).to_vec();
        let proxies = ProxySettings { trusted, ..ProxySettings::default() };
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        forwarded_for(peer.parse().unwrap(), &headers, &proxies).to_string()
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_trusted_proxy() {
        assert_eq!(address("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(address("10.0.0.1", &["203.0.113.7"]), "203.0.113.7");
        // What the client itself sent stands before, and nobody believes it.
        assert_eq!(address("10.0.0.1", &["198.51.100.1, 203.0.113.7"]), "203.0.113.7");
        assert_eq!(address("10.0.0.1", &["198.51.100.1", "203.0.113.7"]), "203.0.113.7");
        // Two proxies.
        assert_eq!(address("10.0.0.1", &["203.0.113.7, 10.0.0.2"]), "203.0.113.7");
        assert_eq!(address("10.0.0.1", &["10.0.0.3,10.0.0.2"]), "10.0.0.3");
        assert_eq!(address("fd00::1", &["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(address("10.0.0.1", &["::ffff:203.0.113.7"]), "203.0.113.7");
        assert_eq!(address("10.0.0.1", &["203.0.113.7:5000"]), "203.0.113.7");
        for nonsense in ["unknown", "", "203.0.113.7, unknown", "_hidden"] {
            assert_eq!(address("10.0.0.1", &[nonsense]), "10.0.0.1", "{nonsense}");
        }
    }
}
