//! The stream that the client library reads from: the connection's own, TLS included, filtered.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_rs::traits::{Reactor, RuntimeKit};
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_util::future::Either;
use futures_util::{AsyncRead, AsyncWrite, Stream};
use lapin::tcp::AsyncTcpStream;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Connection, ConnectionProperties, Result};
use sexton_tls::TlsClient;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt as _};

use super::FrameFilter;

/// Number of bytes read at a time.
const PIECE_BYTES: usize = 32 * 1024;

/// The roots are read once for all connections of the process.
static TLS: LazyLock<TlsClient> = LazyLock::new(TlsClient::default);

type Inner = Either<Compat<TcpStream>, Compat<TlsStream<TcpStream>>>;

/// A connection's stream behind the filter.
struct FilteredStream {
    inner: Inner,
    filter: FrameFilter,
    piece: Vec<u8>,
    /// Filtered bytes; read up to `taken`.
    ready: Vec<u8>,
    taken: usize,
}

impl FilteredStream {
    fn new(inner: Inner, frame_max: u32) -> Self {
        let piece = vec![0; PIECE_BYTES];
        Self { inner, filter: FrameFilter::new(frame_max), piece, ready: Vec::new(), taken: 0 }
    }
}

impl AsyncRead for FilteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        // Held-back bytes are no end of the stream: read on until some pass.
        while this.taken == this.ready.len() {
            let read = ready!(Pin::new(&mut this.inner).poll_read(context, &mut this.piece))?;
            if read == 0 {
                return Poll::Ready(Ok(0));
            }
            this.ready.clear();
            this.taken = 0;
            this.filter.take(&this.piece[..read], &mut this.ready);
        }
        let waiting = &this.ready[this.taken..];
        let count = waiting.len().min(into.len());
        into[..count].copy_from_slice(&waiting[..count]);
        this.taken += count;
        Poll::Ready(Ok(count))
    }
}

impl AsyncWrite for FilteredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, parts)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(context)
    }
}

/// Connects to a broker like the client library, but with the filter in front.
pub(crate) async fn connect(uri: AMQPUri, options: ConnectionProperties) -> Result<Connection> {
    let frame_max = uri.query.frame_max.unwrap_or_default();
    let stream = async move |uri: AMQPUri, _| {
        let (host, port) = (uri.authority.host.as_str(), uri.authority.port);
        let stream = TcpStream::connect((host, port)).await?;
        // The client library fills packets itself.
        stream.set_nodelay(true)?;
        let stream = match uri.scheme {
            AMQPScheme::AMQP => Either::Left(stream.compat()),
            AMQPScheme::AMQPS => Either::Right(encrypted(host, stream).await?.compat()),
        };
        Ok(AsyncTcpStream::Plain(FilteredStream::new(stream, frame_max)))
    };
    Connection::connector(uri, runtime(frame_max), stream, options).await
}

async fn encrypted(host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    TLS.connect(host, stream).await.map_err(|error| {
        let advice = sexton_tls::advice(&error);
        io::Error::other(format!("no TLS with {host}: {error}{advice}"))
    })
}

/// Returns the current runtime, for connections whose streams are [`FilteredStream`].
fn runtime(
    frame_max: u32,
) -> Runtime<impl RuntimeKit<TcpStream = FilteredStream> + Clone + Send + Sync> {
    let tokio = Tokio::current();
    Runtime::new(RuntimeParts::new(tokio.clone(), FilteredReactor { plain: tokio, frame_max }))
}

/// The runtime's timers with another type of stream: the client library takes the type of its streams from its
/// reactor, and makes them in the closure that it is given.
#[derive(Clone, Debug)]
struct FilteredReactor {
    plain: Tokio,
    frame_max: u32,
}

impl Reactor for FilteredReactor {
    type TcpStream = FilteredStream;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        Err::<FilteredStream, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.plain.sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.plain.interval(duration)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let frame_max = self.frame_max;
        async move {
            let stream = TcpStream::connect(address).await?;
            Ok(FilteredStream::new(Either::Left(stream.compat()), frame_max))
        }
    }
}
