//! The connection to a mail server, which reads a bounded number of bytes.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use lettre::transport::smtp::client::AsyncTokioStream;
use sexton_tls::TlsClient;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The most bytes that are read over one connection: a server's line may be endless.
const READ_MAX_BYTES: usize = 256 * 1024;

trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

/// Why connecting failed.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// The server does not answer.
    Unreachable(io::Error),
    /// The server has no valid certificate for its name, or does not speak TLS.
    Tls(io::Error),
}

/// A connection, encrypted from its beginning or not.
pub(super) struct SmtpStream {
    stream: Box<dyn Stream>,
    peer: SocketAddr,
    left: usize,
}

impl SmtpStream {
    /// Connects; over TLS from the beginning if there is a `tls`.
    pub(super) async fn connect(
        host: &str,
        port: u16,
        tls: Option<&TlsClient>,
    ) -> Result<Self, ConnectError> {
        let stream = TcpStream::connect((host, port)).await.map_err(ConnectError::Unreachable)?;
        let peer = stream.peer_addr().map_err(ConnectError::Unreachable)?;
        let stream: Box<dyn Stream> = match tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(host, stream).await.map_err(ConnectError::Tls)?),
        };
        Ok(Self { stream, peer, left: READ_MAX_BYTES })
    }
}

impl fmt::Debug for SmtpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmtpStream({})", self.peer)
    }
}

impl AsyncTokioStream for SmtpStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncRead for SmtpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        match self.left.checked_sub(read) {
            Some(left) => {
                self.left = left;
                polled
            }
            None => Poll::Ready(Err(io::Error::other("the server says too much"))),
        }
    }
}

impl AsyncWrite for SmtpStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
