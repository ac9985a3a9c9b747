//! TLS as this worker speaks it: rustls with ring, and the system's roots, or those that SSL_CERT_FILE
//! and SSL_CERT_DIR name in their place.

use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::{CertificateError, ClientConfig, RootCertStore};

/// A client that trusts the system's roots.
///
/// A system without roots trusts nobody; each connection then says so.
fn client() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    client_with_roots(roots)
}

/// The client in `cell`, made when it is asked for first. Reading the roots takes a while and may wait for
/// a disk, so it has a thread of its own.
pub(crate) async fn shared_client(cell: &OnceLock<Arc<ClientConfig>>) -> Arc<ClientConfig> {
    if let Some(made) = cell.get() {
        return Arc::clone(made);
    }
    // The runtime gives no thread any more only while it ends.
    let made = tokio::task::spawn_blocking(client).await.unwrap_or_else(|_| client());
    Arc::clone(cell.get_or_init(|| made))
}

/// A client that trusts these roots.
pub(crate) fn client_with_roots(roots: RootCertStore) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        // Unwrap safety: ring has the cipher suites of both versions.
        .expect("ring speaks TLS 1.2 and 1.3");
    Arc::new(versions.with_root_certificates(roots).with_no_client_auth())
}

/// What to do about this error; empty if there is nothing to say.
///
/// Nobody who is trusted has signed the other side's certificate: that is for whoever runs the worker
/// to mend, and seldom said by the library in words that tell how.
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
