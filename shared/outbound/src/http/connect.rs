//! Connects to a checked address, and to no other.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Host;

use super::{HttpError, HttpRequest};
use crate::address::blocked_kind;

/// The most addresses of a host that are tried.
const MAX_ADDRESSES: usize = 8;

/// Time limit of connecting to one of several addresses.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects to the host of the request's URL; over TLS if there is a `client`.
pub(super) async fn connect(
    request: &HttpRequest,
    client: Option<Arc<ClientConfig>>,
) -> Result<Box<dyn Stream>, HttpError> {
    let (Some(host), Some(port)) = (request.url.host(), request.url.port_or_known_default()) else {
        return Err(HttpError::AddressRefused("the URL names no host".to_owned()));
    };
    let host = host.to_owned();
    let found = addresses(&host, port).await?;
    let addresses = allowed_addresses(found, request.allows_private_addresses, &host)?;
    let stream = connect_to_first(&addresses, &host).await?;
    // The request is sent as one message, so waiting to fill packets gains nothing.
    let _ = stream.set_nodelay(true);
    let Some(client) = client else { return Ok(Box::new(stream)) };
    let name = match &host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|_| HttpError::Tls(format!("{host} is no name for a certificate")))?,
        Host::Ipv4(address) => ServerName::from(IpAddr::from(*address)),
        Host::Ipv6(address) => ServerName::from(IpAddr::from(*address)),
    };
    match TlsConnector::from(client).connect(name, stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => {
            let advice = sexton_tls::advice(&error);
            Err(HttpError::Tls(format!("no TLS with {host}: {error}{advice}")))
        }
    }
}

/// Resolves the host. Each attempt queries the system's resolver again.
async fn addresses(host: &Host<String>, port: u16) -> Result<Vec<SocketAddr>, HttpError> {
    match host {
        Host::Ipv4(address) => Ok(vec![SocketAddr::from((*address, port))]),
        Host::Ipv6(address) => Ok(vec![SocketAddr::from((*address, port))]),
        Host::Domain(name) => match tokio::net::lookup_host((name.as_str(), port)).await {
            Ok(found) => Ok(found.collect()),
            Err(error) => Err(HttpError::Unresolved(format!("{host} is not found: {error}"))),
        },
    }
}

/// Returns the addresses to which a request may go; never empty.
fn allowed_addresses(
    found: Vec<SocketAddr>,
    allowed: bool,
    host: &Host<String>,
) -> Result<Vec<SocketAddr>, HttpError> {
    let refused = found.iter().find_map(|to| blocked_kind(to.ip()).map(|kind| (to.ip(), kind)));
    let may = |to: &SocketAddr| allowed || blocked_kind(to.ip()).is_none();
    let left: Vec<_> = found.into_iter().filter(may).take(MAX_ADDRESSES).collect();
    match refused {
        _ if !left.is_empty() => Ok(left),
        Some((ip, kind)) => Err(HttpError::AddressRefused(format!("{host} is at {ip}, {kind}"))),
        None => Err(HttpError::Unresolved(format!("{host} has no address"))),
    }
}

/// Connects to the first of the addresses that answers.
async fn connect_to_first(
    addresses: &[SocketAddr],
    host: &Host<String>,
) -> Result<TcpStream, HttpError> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let connecting = TcpStream::connect(address);
        // A single address gets all of the request's time.
        let limit = if addresses.len() > 1 { ADDRESS_TIMEOUT } else { Duration::MAX };
        match timeout(limit, connecting).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(HttpError::Unreachable(format!("cannot connect to {host}: {last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(found: &[&str], allowed: bool) -> Result<Vec<String>, HttpError> {
        let found = found.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 80)).collect();
        let host = Host::Domain("shop.example".to_owned());
        let left = allowed_addresses(found, allowed, &host)?;
        Ok(left.into_iter().map(|to| to.ip().to_string()).collect())
    }

    #[test]
    fn of_several_addresses_the_public_ones_are_left_and_with_leave_all() {
        let found = ["10.0.0.1", "1.1.1.1", "::1"];
        assert_eq!(judged(&found, false).unwrap(), ["1.1.1.1"]);
        assert_eq!(judged(&found, true).unwrap(), found);
    }

    #[test]
    fn a_name_that_leads_to_private_addresses_alone_is_refused_and_says_where_it_leads() {
        let Err(HttpError::AddressRefused(message)) = judged(&["10.0.0.1", "::1"], false) else {
            panic!("not refused");
        };
        assert!(message.contains("shop.example is at 10.0.0.1, a private address"), "{message}");
        assert!(matches!(judged(&[], true), Err(HttpError::Unresolved(_))));
    }
}
