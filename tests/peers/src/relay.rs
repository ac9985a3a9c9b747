//! A relay that takes TLS off a connection, as one in front of a broker or a collector does.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::tls;

/// A port of this host that speaks TLS and passes what it decrypts on; it closes when this value is dropped.
#[derive(Debug)]
pub struct TlsRelay {
    /// Its port; the certificate names `localhost` and 127.0.0.1.
    pub port: u16,
    listening: AbortHandle,
}

impl Drop for TlsRelay {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl TlsRelay {
    /// Starts a relay to this server. A client that does not trust the certificate never reaches it.
    pub async fn start(host: &str, port: u16) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.unwrap();
        let target = (host.to_owned(), port);
        let port = listener.local_addr().unwrap().port();
        let listening = tokio::spawn(async move {
            let acceptor = tls::acceptor(&["h2"]);
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, target) = (acceptor.clone(), target.clone());
                tokio::spawn(async move {
                    let Ok(mut client) = acceptor.accept(stream).await else { return };
                    let mut server = TcpStream::connect(target).await.unwrap();
                    // Either side may reset the connection.
                    drop(copy_bidirectional(&mut client, &mut server).await);
                });
            }
        });
        Self { port, listening: listening.abort_handle() }
    }
}
