//! Requests over TLS, to a server whose certificate a test authority has signed.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

fn certificate(pem: &[u8]) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem).unwrap()
}

/// The server's side, as `localhost` and 127.0.0.1.
fn acceptor() -> TlsAcceptor {
    let chain = vec![certificate(include_bytes!("tls/localhost.pem"))];
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/localhost.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Serves one connection, over TLS or without; the port.
async fn serve_once(encrypted: bool) -> u16 {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhidden";
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        if !encrypted {
            let _ = stream.write_all(ANSWER).await;
            return;
        }
        // Whoever does not trust the certificate goes in the middle of the handshake.
        let Ok(mut stream) = acceptor().accept(stream).await else { return };
        let mut buffer = [0; 4096];
        assert!(stream.read(&mut buffer).await.unwrap() > 0);
        stream.write_all(ANSWER).await.unwrap();
        let _ = stream.shutdown().await;
    });
    port
}

async fn get(host: &str, encrypted: bool, roots: Option<RootCertStore>) -> TaskEnd {
    let port = serve_once(encrypted).await;
    let spec = HttpTask {
        url: Url::parse(&format!("https://{host}:{port}/")).unwrap(),
        method: Method::POST,
        headers: Vec::new(),
        timeout: DEADLINE,
        max_response: 1024,
        allowed: true,
    };
    let executor = executor(spec);
    if let Some(roots) = roots {
        executor.host.tls.set(tls::client_of(roots)).unwrap();
    }
    let (_supervisor, control) = long_lease();
    in_time(executor.run(&task(1), control)).await
}

fn test_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(certificate(include_bytes!("tls/ca.pem"))).unwrap();
    roots
}

#[tokio::test]
async fn a_server_that_proves_its_name_is_spoken_to_under_encryption() {
    for host in ["localhost", "127.0.0.1"] {
        let end = get(host, true, Some(test_roots())).await;
        assert_eq!(end.outcome, Outcome::Succeeded, "{host}");
        assert_eq!(lines(&end, Stream::Stdout), ["hidden"]);
    }
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_or_that_speaks_no_tls_is_told_nothing() {
    // The system's roots do not have the tests' authority; the certificate has no such name.
    for (host, encrypted, roots) in [
        ("localhost", true, None),
        ("127.0.0.2", true, Some(test_roots())),
        ("localhost", false, Some(test_roots())),
    ] {
        let end = get(host, encrypted, roots).await;
        let (class, message, retried) = failure(&end);
        assert_eq!((class, retried), ("http_tls", true), "{message}");
    }
}
