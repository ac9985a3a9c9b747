//! The servers' side of TLS.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

const AUTHORITY: &str = include_str!("certificates/ca.pem");

/// The authority that has signed the servers' certificate.
pub fn authority() -> CertificateDer<'static> {
    certificate(AUTHORITY)
}

/// As [`authority`], as a file for `SSL_CERT_FILE` has it.
pub fn authority_pem() -> &'static str {
    AUTHORITY
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// The TLS configuration of `localhost` and 127.0.0.1. `protocols` are offered to clients that ask for one.
pub(crate) fn acceptor(protocols: &[&str]) -> TlsAcceptor {
    let chain = vec![certificate(include_str!("certificates/localhost.pem"))];
    let key = include_bytes!("certificates/localhost.key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_slice(key).unwrap())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}
