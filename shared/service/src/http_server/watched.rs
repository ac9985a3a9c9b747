//! A client's connection: notes when something moves, and fails if the client takes nothing of an answer for too long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::places::Activity;

#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
    /// Longest time in which nothing is taken.
    limit: Duration,
    /// Runs while something waits to be taken.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    pub(super) const fn new(stream: S, activity: Arc<Activity>, limit: Duration) -> Self {
        Self { stream, activity, limit, stalled: None }
    }

    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            self.activity.moved();
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut this.stream).poll_read(context, buffer));
        if buffer.filled().len() > before {
            this.activity.moved();
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, buffer);
        this.judge(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, buffers);
        this.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const KIB: usize = 1024;

    fn watched(capacity: usize) -> (Watched<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (stream, client) = duplex(capacity);
        (Watched::new(stream, Arc::new(Activity::new(Instant::now())), LIMIT), client)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_which_nothing_is_taken_ends() {
        let (mut stream, _client) = watched(KIB);
        let begun = tokio::time::Instant::now();
        let error = stream.write_all(&[0; 2 * KIB]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), LIMIT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_taken_slowly_arrives_whole() {
        let (mut stream, mut client) = watched(KIB);
        let taking = tokio::spawn(async move {
            let mut taken = 0;
            let mut part = [0; KIB];
            while let Ok(bytes @ 1..) = client.read(&mut part).await {
                taken += bytes;
                sleep(LIMIT * 2 / 3).await;
            }
            taken
        });
        stream.write_all(&[0; 8 * KIB]).await.unwrap();
        drop(stream);
        assert_eq!(taking.await.unwrap(), 8 * KIB);
    }
}
