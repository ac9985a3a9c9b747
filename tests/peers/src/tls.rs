//! The servers' side of TLS, and that of a client that trusts them.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

const AUTHORITY: &str = include_str!("certificates/ca.pem");
const CERTIFICATE: &str = include_str!("certificates/localhost.pem");
const KEY: &str = include_str!("certificates/localhost.key");

/// The authority that has signed the servers' certificate.
pub fn authority() -> CertificateDer<'static> {
    certificate(AUTHORITY)
}

/// As [`authority`], as a file for `SSL_CERT_FILE` has it.
pub fn authority_pem() -> &'static str {
    AUTHORITY
}

/// The certificate of `localhost` and 127.0.0.1, as a file for another server has it.
pub fn certificate_pem() -> &'static str {
    CERTIFICATE
}

/// The key of [`certificate_pem`], as a file has it.
pub fn key_pem() -> &'static str {
    KEY
}

/// Does the handshake with a server that has this certificate, as a client that trusts the authority alone.
pub async fn encrypt(stream: TcpStream) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(authority()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let host = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(host, stream).await.unwrap()
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// The TLS configuration of `localhost` and 127.0.0.1. `protocols` are offered to clients that ask for one.
pub(crate) fn acceptor(protocols: &[&str]) -> TlsAcceptor {
    let chain = vec![certificate(CERTIFICATE)];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}
