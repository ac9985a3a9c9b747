//! TLS to other systems: rustls with ring, and the system's roots, or those that SSL_CERT_FILE and SSL_CERT_DIR
//! name in their place.

use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::{CertificateError, ClientConfig, RootCertStore};

/// The roots that connections of a process trust. Clones share them.
///
/// The system's roots are read for the first connection that needs them: reading them takes a while.
#[derive(Clone, Debug, Default)]
pub struct TlsClient(Arc<OnceLock<Arc<ClientConfig>>>);

impl TlsClient {
    /// A client that trusts these roots alone.
    pub fn with_roots(roots: RootCertStore) -> Self {
        Self(Arc::new(OnceLock::from(client_with_roots(roots))))
    }

    /// The configuration, made at the first call. A thread of its own makes it, because reading the roots may
    /// wait for a disk.
    pub(crate) async fn config(&self) -> Arc<ClientConfig> {
        if let Some(made) = self.0.get() {
            return Arc::clone(made);
        }
        // The runtime gives no thread any more only while it ends.
        let made =
            tokio::task::spawn_blocking(system_client).await.unwrap_or_else(|_| system_client());
        Arc::clone(self.0.get_or_init(|| made))
    }

    /// Whether the roots have been read.
    pub fn is_loaded(&self) -> bool {
        self.0.get().is_some()
    }
}

/// A client that trusts the system's roots.
///
/// A system without roots trusts nobody; each connection then says so.
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

/// The remedy for this error, to be put behind its message; empty if there is none to name.
///
/// The remedy for an unknown issuer is in the hands of the process's operator, and the library's message does
/// not name it.
pub(crate) fn advice(error: &(dyn Error + 'static)) -> &'static str {
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
    // An IO error passes its inner one over when it is asked for its source.
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let found = match inner {
        Some(inner) => inner.downcast_ref::<rustls::Error>(),
        None => error.downcast_ref::<rustls::Error>(),
    };
    let unknown = CertificateError::UnknownIssuer;
    found.is_some_and(|error| *error == rustls::Error::InvalidCertificate(unknown))
}
