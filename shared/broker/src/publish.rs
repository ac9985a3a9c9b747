//! Publishes with confirms.
//!
//! A publication that returned `Ok` is in its queue, on a majority of the brokers. After any other result it may be.
//! Publishing again is harmless, since a second copy of a ticket authorises the same attempt.
//!
//! Nothing is stored here for later: while the broker is unreachable a publication fails at once, and the row
//! remembers its unpublished ticket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sexton_model::queue_incident::QueueIncidentKind;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, Instant, timeout};

use crate::circuit_breaker::{CircuitBreaker, Route};
use crate::lane::{Lane, MAX_IN_FLIGHT, Request};
use crate::link::Link;
use crate::properties::Properties;
use crate::timeouts::Timeouts;

/// The largest body of a ticket: 1 MiB. Params are limited far below; this is the last line of
/// defence, and small enough for every broker's own limit.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Default number of a publisher's lanes: one fills its window while the other waits.
pub const DEFAULT_LANES: usize = 2;

/// Maximum number of requests that wait in a lane; further callers wait.
const LANE_BACKLOG: usize = 64;

/// Maximum size of a batch that stays on one lane, and so arrives in its order, except for messages that are sent
/// again.
pub const MAX_ORDERED_BATCH: usize = 64;

/// A message to publish.
#[derive(Clone, Debug)]
pub struct Publication {
    queue: String,
    body: Vec<u8>,
    properties: Properties,
    limit: usize,
}

impl Publication {
    /// Makes a message of Sexton's own for a queue; its body may have [`MAX_BODY_BYTES`].
    pub fn new(queue: impl Into<String>, body: Vec<u8>, properties: Properties) -> Self {
        Self { queue: queue.into(), body, properties, limit: MAX_BODY_BYTES }
    }

    /// Makes a copy of a message that the broker has delivered. It has no size limit here: the broker has accepted it
    /// once, and a refused copy could not go anywhere.
    pub fn copy(queue: impl Into<String>, body: Vec<u8>, properties: Properties) -> Self {
        Self { limit: usize::MAX, ..Self::new(queue, body, properties) }
    }

    /// Gives it a place in a trace, as W3C Trace Context writes it.
    #[must_use]
    pub fn with_trace(mut self, traceparent: String, tracestate: Option<String>) -> Self {
        self.properties.traceparent = Some(traceparent);
        self.properties.tracestate = tracestate;
        self
    }

    /// Returns the name of its queue.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    fn check(&self) -> Result<(), PublishError> {
        let limits = [("body", self.body.len(), self.limit), ("queue", self.queue.len(), 255)];
        for (what, bytes, limit) in limits {
            if bytes > limit {
                return Err(PublishError::TooLarge { what, bytes, limit });
            }
        }
        self.properties.write().map(|_| ())
    }
}

/// Why a publication may not be in its queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The queue does not exist. The topology has been declared again: try once more, later.
    #[error("queue {queue} does not exist on the broker")]
    Unroutable {
        /// The queue's name.
        queue: String,
    },
    /// The broker refused to store it (queue full, no majority). Try again later.
    #[error("the broker refused a message for queue {queue}")]
    Refused {
        /// The queue's name.
        queue: String,
    },
    /// The connection is missing, or broke before the confirm. Try again when there is one.
    #[error("publish: {reason}")]
    Unavailable {
        /// The client library's words.
        reason: String,
    },
    /// The broker sent no confirm in time: it is overloaded, or the queue has no leader. Try again later.
    #[error(
        "queue {queue} did not confirm within {after_ms} ms; if it goes on so while other queues do, it \
         has no leader: bring its nodes back, or delete it if it came back so from a crash"
    )]
    TimedOut {
        /// The queue's name.
        queue: String,
        /// The limit, in milliseconds.
        after_ms: u64,
    },
    /// It is too large to be published; nothing was sent.
    #[error("{what} has {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl PublishError {
    pub(crate) fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into() }
    }
}

/// A handle to a few publishing lanes on one link; cheap to clone. The lanes end with the last handle.
///
/// A queue that did not confirm in time delays the others once: afterwards publications for it fail at once, except
/// for an occasional probe on a separate lane.
#[derive(Clone, Debug)]
pub struct Publisher {
    link: Link,
    lanes: Arc<[mpsc::Sender<Request>]>,
    turn: Arc<AtomicUsize>,
    /// The lane for probes of silent queues.
    probes: Arc<[mpsc::Sender<Request>]>,
    /// The lane for queues that were silent while the broker may have been. It has the whole confirm timeout, so that
    /// a slow broker still counts.
    isolated: Arc<[mpsc::Sender<Request>]>,
    circuit_breaker: Arc<CircuitBreaker>,
}

impl Publisher {
    /// Starts `lanes` (at least one) lanes on the current tokio runtime; see [`DEFAULT_LANES`].
    pub fn start(link: &Link, lanes: usize) -> Self {
        let circuit_breaker = Arc::<CircuitBreaker>::default();
        let start_one = |confirm| {
            let (sender, receiver) = mpsc::channel(LANE_BACKLOG);
            tokio::spawn(
                Lane::new(link.clone(), confirm, Arc::clone(&circuit_breaker)).run(receiver),
            );
            sender
        };
        let Timeouts { confirm, probe, .. } = *link.timeouts();
        let lanes = (0..lanes.max(1)).map(|_| start_one(confirm)).collect();
        let (probes, isolated) = ([start_one(probe)].into(), [start_one(confirm)].into());
        Self { link: link.clone(), lanes, turn: Arc::default(), probes, isolated, circuit_breaker }
    }

    /// Publishes a batch and waits for its confirms; one result per publication, in their order.
    ///
    /// Fails fast without a connection, or when the broker has stopped reading. Messages of one batch of more than
    /// [`MAX_ORDERED_BATCH`] may arrive in any order, and all may more than once.
    ///
    /// Dropping the future does not undo anything: the batch may still be published.
    pub async fn publish(&self, batch: Vec<Publication>) -> Vec<Result<(), PublishError>> {
        if let Some(error) = self.unavailability() {
            return batch.iter().map(|_| Err(error.clone())).collect();
        }
        let (generation, now) = (self.link.generation(), Instant::now());
        let mut answers: Vec<_> = batch.iter().map(Publication::check).collect();
        let (mut good, mut suspects, mut probes) = (Vec::new(), Vec::new(), Vec::new());
        let mut doubted = Vec::new();
        for (place, publication) in batch.into_iter().enumerate() {
            if answers[place].is_err() {
                continue;
            }
            match self.circuit_breaker.route(publication.queue(), generation, self.pause(), now) {
                Route::Send => good.push((place, publication)),
                route @ (Route::Probe | Route::SendSeparately) => {
                    doubted.push((place, publication.queue().to_owned()));
                    let way = if route == Route::Probe { &mut probes } else { &mut suspects };
                    way.push((place, publication));
                }
                Route::Reject => answers[place] = Err(self.timeout_error(publication.queue)),
            }
        }
        let (mut sent, separate, tried) = tokio::join!(
            self.distribute(good, &self.lanes),
            self.distribute(suspects, &self.isolated),
            self.distribute(probes, &self.probes)
        );
        sent.extend(separate.into_iter().chain(tried));
        // A refusal by the breaker is no answer of the queue.
        self.record_outcomes(sent.iter(), generation, now);
        for (place, answer) in sent {
            answers[place] = answer;
        }
        for (place, queue) in doubted {
            use PublishError::{TimedOut, Unavailable};
            // The latter concerns the connection, not the queue.
            if !matches!(answers[place], Err(TimedOut { .. } | Unavailable { .. })) {
                self.circuit_breaker.reset(&queue, generation);
            }
        }
        answers
    }

    /// Records silent queues, of publications that were sent since `since`.
    fn record_outcomes<'a>(
        &self,
        answers: impl Iterator<Item = &'a (usize, Result<(), PublishError>)> + Clone,
        generation: u64,
        since: Instant,
    ) {
        let now = Instant::now();
        if answers.clone().any(|(_, answer)| answer.is_ok()) {
            self.circuit_breaker.record_confirm(generation, now);
        }
        for (_, answer) in answers {
            if let Err(PublishError::TimedOut { queue, .. }) = answer
                && !self.link.is_blocked()
            {
                self.circuit_breaker.record_timeout(queue, generation, since, now + self.pause());
            }
        }
    }

    /// Publishes one message.
    ///
    /// # Errors
    ///
    /// [`PublishError`].
    pub async fn publish_one(&self, publication: Publication) -> Result<(), PublishError> {
        let answers = self.publish(vec![publication]).await;
        answers.into_iter().next().unwrap_or_else(|| Err(PublishError::unavailable("no answer")))
    }

    /// Notes for the doctor that a queue has not confirmed a message in time, if others have meanwhile: otherwise the
    /// broker is silent.
    pub fn note_unconfirmed(&self, queue: &str) {
        if self.circuit_breaker.is_open(queue, self.link.generation()) {
            self.link.note_queue_incident(queue, QueueIncidentKind::Refused, 1);
        }
    }

    fn unavailability(&self) -> Option<PublishError> {
        if !self.link.is_up() {
            return Some(PublishError::unavailable("there is no connection to the broker"));
        }
        let blocked = self.link.is_blocked();
        blocked.then(|| PublishError::unavailable("the broker is short of memory or disk"))
    }

    /// Returns how long a silent queue is avoided.
    fn pause(&self) -> Duration {
        self.link.timeouts().confirm
    }

    fn timeout_error(&self, queue: String) -> PublishError {
        PublishError::TimedOut { queue, after_ms: self.pause().as_millis() as u64 }
    }

    /// Distributes parts of a batch over lanes and collects the results, each with its index.
    async fn distribute(
        &self,
        good: Vec<(usize, Publication)>,
        lanes: &[mpsc::Sender<Request>],
    ) -> Vec<(usize, Result<(), PublishError>)> {
        let piece = good.len().div_ceil(lanes.len()).clamp(MAX_ORDERED_BATCH, MAX_IN_FLIGHT);
        let mut waiting = Vec::with_capacity(good.len().div_ceil(piece));
        let mut rest = good.into_iter().peekable();
        while rest.peek().is_some() {
            let (places, publications): (Vec<_>, Vec<_>) = rest.by_ref().take(piece).unzip();
            waiting.push((places, self.enqueue(publications, lanes).await));
        }
        let mut answers = Vec::new();
        for (places, handed) in waiting {
            let count = places.len();
            let answer = match handed {
                Ok(receiver) => receiver.await.ok(),
                Err(error) => Some(vec![Err(error); count]),
            };
            let lost = || vec![Err(PublishError::unavailable("the publisher has ended")); count];
            answers.extend(places.into_iter().zip(answer.unwrap_or_else(lost)));
        }
        answers
    }

    async fn enqueue(
        &self,
        publications: Vec<Publication>,
        lanes: &[mpsc::Sender<Request>],
    ) -> Result<oneshot::Receiver<Vec<Result<(), PublishError>>>, PublishError> {
        let lane = &lanes[self.turn.fetch_add(1, Ordering::Relaxed) % lanes.len()];
        let (reply, answer) = oneshot::channel();
        let confirm = self.link.timeouts().confirm;
        match timeout(confirm, lane.send(Request { publications, reply })).await {
            Ok(Ok(())) => Ok(answer),
            Ok(Err(_)) => Err(PublishError::unavailable("the publisher has ended")),
            Err(_) => Err(PublishError::unavailable("what came before it is still not confirmed")),
        }
    }
}
