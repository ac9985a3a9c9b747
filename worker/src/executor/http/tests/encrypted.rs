//! Tests of requests over TLS, to a server whose certificate a test authority has signed.

use rustls::RootCertStore;
use sexton_peers::http::Seen;
use sexton_peers::smtp;

use super::*;

/// Sends a request to this port of the host, from a worker that trusts `roots`, or the system's roots.
async fn post(host: &str, port: u16, roots: Option<RootCertStore>) -> TaskEnd {
    let tls = roots.map_or_else(TlsClient::default, TlsClient::with_roots);
    let executor = executor_trusting(tls, to_url(&format!("https://{host}:{port}/")));
    let (_supervisor, control) = long_lease();
    in_time(executor.run(&task(1), control)).await
}

fn test_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(sexton_peers::authority()).unwrap();
    roots
}

async fn server() -> Server {
    Server::start_encrypted(vec![Act::answer("200 OK", "", "hidden")]).await
}

#[tokio::test]
async fn a_server_that_proves_its_name_is_spoken_to_under_encryption() {
    let server = server().await;
    for host in ["localhost", "127.0.0.1"] {
        let end = post(host, server.address.port(), Some(test_roots())).await;
        assert_eq!(end.outcome, Outcome::Succeeded, "{host}");
        assert_eq!(lines(&end, Stream::Stdout), ["hidden"]);
    }
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_or_that_speaks_no_tls_is_told_nothing() {
    let mut encrypted = server().await;
    // This server speaks first, and in clear.
    let mut plain = smtp::Server::start(smtp::Script::default()).await;
    let port = encrypted.address.port();
    // The system's roots lack the tests' authority; the certificate lacks that name.
    for (host, port, roots, advised) in [
        ("localhost", port, None, true),
        ("127.0.0.2", port, Some(test_roots()), false),
        ("localhost", plain.port, Some(test_roots()), false),
    ] {
        let end = post(host, port, roots).await;
        let (class, message, retried) = failure(&end);
        assert_eq!((class, retried), ("http_tls", true), "{message}");
        assert_eq!(message.contains("in SSL_CERT_FILE"), advised, "{message}");
    }
    for _ in 0..2 {
        assert_eq!(encrypted.next().await, Seen::Gone);
    }
    assert_eq!(plain.conversation().await, "");
}
