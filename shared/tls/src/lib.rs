//! TLS to brokers and other systems: rustls with ring, and the system's roots, or those in `SSL_CERT_FILE` and
//! `SSL_CERT_DIR`.
//!
//! There is no client certificate and no way to skip the check of a server's name. sqlx has its own TLS, with the same
//! roots.

use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The roots that connections of a process trust. Clones share them.
///
/// The system's roots are read for the first connection that needs them: reading them takes a while.
#[derive(Clone, Debug, Default)]
pub struct TlsClient(Arc<OnceLock<Arc<ClientConfig>>>);

impl TlsClient {
    /// Creates a client that trusts these roots alone.
    pub fn with_roots(roots: RootCertStore) -> Self {
        Self(Arc::new(OnceLock::from(client_with_roots(roots))))
    }

    /// Returns the configuration, built at the first call. A separate thread builds it, because reading the
    /// roots may wait for a disk.
    pub async fn config(&self) -> Arc<ClientConfig> {
        if let Some(config) = self.0.get() {
            return Arc::clone(config);
        }
        // The runtime refuses a thread only while it shuts down.
        let config =
            tokio::task::spawn_blocking(system_client).await.unwrap_or_else(|_| system_client());
        Arc::clone(self.0.get_or_init(|| config))
    }

    /// Does the TLS handshake with `host`, a name or an address, over a connection to it. Dropping the future closes
    /// the connection.
    ///
    /// # Errors
    ///
    /// The certificate is not for this host or of no trusted authority, or the server speaks no TLS; see [`advice`].
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(self.config().await).connect(name, stream).await
    }

    /// Returns whether the roots have been read.
    pub fn is_loaded(&self) -> bool {
        self.0.get().is_some()
    }
}

/// Builds a client configuration that trusts the system's roots.
///
/// A system without roots trusts no server; each connection then reports that.
fn system_client() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    client_with_roots(roots)
}

fn client_with_roots(roots: RootCertStore) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        // Unwrap safety: ring has the cipher suites of both versions.
        .expect("ring speaks TLS 1.2 and 1.3");
    Arc::new(versions.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the remedy for this error, to append to its message; empty if none is known.
///
/// The operator of the process must act on an unknown issuer, and the library's message does not say how.
pub fn advice(error: &(dyn Error + 'static)) -> &'static str {
    let mut next = Some(error);
    while let Some(error) = next {
        if is_unknown_issuer(error) {
            return "; the authority that signed its certificate is not trusted here: add it to the \
                    system's, or name a file with its certificate in SSL_CERT_FILE";
        }
        next = error.source();
    }
    ""
}

fn is_unknown_issuer(error: &(dyn Error + 'static)) -> bool {
    // An IO error returns its inner error's source as its own, so the inner error is read directly.
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let found = match inner {
        Some(inner) => inner.downcast_ref::<rustls::Error>(),
        None => error.downcast_ref::<rustls::Error>(),
    };
    let unknown = CertificateError::UnknownIssuer;
    found.is_some_and(|error| *error == rustls::Error::InvalidCertificate(unknown))
}
