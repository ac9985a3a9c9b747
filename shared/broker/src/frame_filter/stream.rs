//! The stream that the client library reads from: the connection's own, TLS included, filtered.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_rs::traits::{Reactor, RuntimeKit};
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_util::{AsyncRead, AsyncWrite, Stream};
use lapin::tcp::{AMQPUriTcpExt as _, AsyncTcpStream, OwnedTLSConfig};
use lapin::uri::AMQPUri;
use lapin::{Connection, ConnectionProperties, Result};

use super::FrameFilter;

/// Number of bytes read at a time.
const PIECE_BYTES: usize = 32 * 1024;

type Plain = <Tokio as Reactor>::TcpStream;
type Inner = AsyncTcpStream<Plain>;

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
    let plain = Runtime::tokio_current();
    let frame_max = uri.query.frame_max.unwrap_or_default();
    let stream = async move |uri: AMQPUri, _| {
        let tls = OwnedTLSConfig::default();
        let stream = uri.connect_with_config_async(tls.as_ref(), &plain).await?;
        Ok(AsyncTcpStream::Plain(FilteredStream::new(stream, frame_max)))
    };
    Connection::connector(uri, runtime(frame_max), stream, options).await
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
        let (connecting, frame_max) = (self.plain.tcp_connect_addr(address), self.frame_max);
        async move { Ok(FilteredStream::new(AsyncTcpStream::Plain(connecting.await?), frame_max)) }
    }
}
