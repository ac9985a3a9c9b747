//! The body of a request: notes when it has come whole. From then on its client waits for the server, and its connection stays.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use super::places::{Activity, AtWork};

/// The body of a request that [`accept`](super::accept) hands on.
#[derive(Debug)]
pub struct RequestBody {
    body: Incoming,
    answering: Arc<Answering>,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Answering {
    activity: Arc<Activity>,
    /// `None`: the body has yet to come, or the answer is there.
    at_work: Mutex<Option<AtWork>>,
}

impl RequestBody {
    /// Wraps the body of a request on the connection of `activity`; one without a body has come whole.
    pub(super) fn new(body: Incoming, activity: Arc<Activity>) -> (Self, Arc<Answering>) {
        let answering = Arc::new(Answering { activity, at_work: Mutex::default() });
        if body.is_end_stream() {
            answering.begin();
        }
        (Self { body, answering: Arc::clone(&answering) }, answering)
    }
}

impl Answering {
    fn at_work(&self) -> MutexGuard<'_, Option<AtWork>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) {
        self.at_work().get_or_insert_with(|| self.activity.at_work());
    }

    /// The answer is there.
    pub(super) fn end(&self) {
        *self.at_work() = None;
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        if frame.is_none() || this.body.is_end_stream() {
            this.answering.begin();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
