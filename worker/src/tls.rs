//! TLS as this worker speaks it: rustls with ring, and the system's roots.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

/// A client that trusts the system's roots.
///
/// A system without roots trusts nobody; each connection then says so.
pub(crate) fn client() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    client_of(roots)
}

/// A client that trusts these roots.
pub(crate) fn client_of(roots: RootCertStore) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        // Unwrap safety: ring has the cipher suites of both versions.
        .expect("ring speaks TLS 1.2 and 1.3");
    Arc::new(versions.with_root_certificates(roots).with_no_client_auth())
}
