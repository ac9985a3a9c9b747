//! One publishing channel and the only task that uses it.
//!
//! Waiting messages are sent at once, up to a window, and then their confirms are awaited. The client library
//! attaches a returned message to the *next* confirm, whichever that is, so with several in flight a return says only
//! that some message of the window had no queue. Such a window is sent again one by one, each alone in flight, and
//! then only the returned ones fail.
//!
//! A lane closes a channel that timed out or sent something impossible: a late answer on it would be taken for the
//! next message's.

use std::sync::Arc;

use futures_util::future::join_all;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, PublisherConfirm};
use sexton_model::queue_incident::QueueIncidentKind;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, Instant, timeout, timeout_at};

use crate::circuit_breaker::CircuitBreaker;
use crate::link::Link;
use crate::publish::{Publication, PublishError};

/// Maximum number of messages in flight on a channel, and so of those that are sent twice for one return.
pub(crate) const MAX_IN_FLIGHT: usize = 256;

/// Maximum number of requests taken at once; their messages are sent window by window.
const MAX_REQUESTS_PER_ROUND: usize = 64;

/// Minimum age of a channel that is replaced because a queue refused a message: below the relay's first wait, so that
/// each of its probes may have a fresh channel, and long enough that many refusals at once do not open as many
/// channels.
const MIN_REFUSED_CHANNEL_AGE: Duration = Duration::from_secs(1);

type Answer = Result<(), PublishError>;

/// A part of a batch and the receiver of its answers.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) publications: Vec<Publication>,
    pub(crate) reply: oneshot::Sender<Vec<Answer>>,
}

pub(crate) struct Lane {
    link: Link,
    /// Time limit from writing a message to its confirm.
    confirm: Duration,
    circuit_breaker: Arc<CircuitBreaker>,
    channel: Option<(u64, Channel)>,
    /// When the channel was opened.
    opened: Option<Instant>,
}

/// The meaning of a confirm for the message that was alone in flight.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Settled(Answer),
    /// It concerns another message: the channel is out of step.
    OutOfStep,
}

impl Lane {
    pub(crate) fn new(link: Link, confirm: Duration, circuit_breaker: Arc<CircuitBreaker>) -> Self {
        Self { link, confirm, circuit_breaker, channel: None, opened: None }
    }

    /// Serves requests until every sender is dropped.
    pub(crate) async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut taken = Vec::with_capacity(MAX_REQUESTS_PER_ROUND);
        while requests.recv_many(&mut taken, MAX_REQUESTS_PER_ROUND).await > 0 {
            let all: Vec<_> = taken.iter().flat_map(|request| &request.publications).collect();
            let mut answers = Vec::with_capacity(all.len());
            for window in all.chunks(MAX_IN_FLIGHT) {
                answers.extend(self.send(window).await);
            }
            let mut answers = answers.into_iter();
            for Request { publications, reply } in taken.drain(..) {
                // A caller that has stopped waiting no longer needs the answer: the row decides.
                let _ = reply.send(answers.by_ref().take(publications.len()).collect());
            }
        }
    }

    async fn send(&mut self, window: &[&Publication]) -> Vec<Answer> {
        let channel = timeout(self.confirm, self.channel()).await.unwrap_or_else(|_| {
            Err(PublishError::unavailable("the broker does not open a channel"))
        });
        let generation = self.channel.as_ref().map(|(generation, _)| *generation);
        let answers = match channel {
            Ok(channel) => match self.send_pipelined(&channel, window).await {
                Some(answers) => answers,
                None => self.send_one_by_one(window).await,
            },
            Err(error) => vec![Err(error); window.len()],
        };
        // This precedes every answer: the caller whose queue did not confirm checks whether another queue did.
        if let Some(generation) = generation
            && answers.iter().any(Result::is_ok)
        {
            self.circuit_breaker.record_confirm(generation, Instant::now());
        }
        self.record_queue_incidents(&answers);
        self.drop_refused_channel(&answers);
        let unroutable = |answer: &Answer| matches!(answer, Err(PublishError::Unroutable { .. }));
        if answers.iter().any(unroutable)
            && let Err(error) = self.link.redeclare().await
        {
            tracing::debug!(%error, "the topology could not be declared again");
        }
        answers
    }

    /// Drops the channel after a refusal: RabbitMQ remembers for each channel that a full queue refuses it, even
    /// after the policy that made it full is removed, until a consumer takes a message out. A new channel has no such
    /// memory.
    fn drop_refused_channel(&mut self, answers: &[Answer]) {
        let refused =
            answers.iter().any(|answer| matches!(answer, Err(PublishError::Refused { .. })));
        if refused && self.opened.is_none_or(|opened| opened.elapsed() >= MIN_REFUSED_CHANNEL_AGE) {
            self.channel = None;
        }
    }

    /// Notes queue incidents that a policy may have caused.
    fn record_queue_incidents(&self, answers: &[Answer]) {
        for answer in answers {
            match answer {
                Err(PublishError::Refused { queue }) => {
                    self.link.note_queue_incident(queue, QueueIncidentKind::Refused, 1);
                }
                Err(PublishError::Unroutable { queue }) => self.link.note_missing_queue(queue),
                _ => {}
            }
        }
    }

    /// Sends all, then awaits all. `None` if a message came back, so that no answer is certain.
    async fn send_pipelined(
        &mut self,
        channel: &Channel,
        window: &[&Publication],
    ) -> Option<Vec<Answer>> {
        let deadline = Instant::now() + self.confirm;
        let sending = join_all(window.iter().map(|publication| write(channel, publication)));
        let Ok(written) = timeout_at(deadline, sending).await else {
            self.channel = None;
            return Some(window.iter().map(|late| Err(self.timeout_error(late))).collect());
        };
        let mut answers = Vec::with_capacity(window.len());
        let mut returned = false;
        for (publication, confirm) in window.iter().zip(written) {
            let answer = match confirm {
                Ok(confirm) => timeout_at(deadline, confirm).await,
                Err(error) => Ok(Err(error)),
            };
            answers.push(match answer {
                Ok(Ok(Confirmation::Ack(None))) => Ok(()),
                Ok(Ok(Confirmation::Nack(None))) => Err(refused_error(publication)),
                Ok(Ok(Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)))) => {
                    returned = true;
                    Err(PublishError::unavailable("a message of the same batch came back"))
                }
                Ok(Ok(Confirmation::NotRequested)) => Err(self.channel_error("no confirm mode")),
                Ok(Err(error)) => Err(self.channel_error(&error.to_string())),
                Err(_) => {
                    self.channel = None;
                    Err(self.timeout_error(publication))
                }
            });
        }
        // A broken channel after a return may have missed more returns; then no answer of the window is certain
        // either, and sending it once more is harmless.
        (!returned).then_some(answers)
    }

    async fn send_one_by_one(&mut self, window: &[&Publication]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(window.len());
        for publication in window {
            let answer = match self.send_alone(publication).await {
                Verdict::Settled(answer) => answer,
                Verdict::OutOfStep => Err(self.channel_error("a confirm for another message")),
            };
            let failure = match &answer {
                Err(error @ (PublishError::Unavailable { .. } | PublishError::TimedOut { .. })) => {
                    Some(error.clone())
                }
                _ => None,
            };
            answers.push(answer);
            if let Some(error) = failure {
                // One timeout per window is enough; the other messages would wait as long in vain.
                let error = match error {
                    PublishError::TimedOut { .. } => {
                        PublishError::unavailable("one before it hangs")
                    }
                    error => error,
                };
                answers.resize(window.len(), Err(error));
                break;
            }
        }
        answers
    }

    /// Publishes one message with nothing else in flight.
    async fn send_alone(&mut self, publication: &Publication) -> Verdict {
        let channel = match self.channel().await {
            Ok(channel) => channel,
            Err(error) => return Verdict::Settled(Err(error)),
        };
        let whole = async { write(&channel, publication).await?.await };
        match timeout(self.confirm, whole).await {
            Ok(Ok(confirmation)) => judge(confirmation, publication),
            Ok(Err(error)) => Verdict::Settled(Err(self.channel_error(&error.to_string()))),
            Err(_) => {
                self.channel = None;
                Verdict::Settled(Err(self.timeout_error(publication)))
            }
        }
    }

    /// Returns the channel, in confirm mode, on the current connection.
    async fn channel(&mut self) -> Result<Channel, PublishError> {
        if let Some((generation, channel)) = &self.channel
            && *generation == self.link.generation()
            && channel.status().connected()
        {
            return Ok(channel.clone());
        }
        self.channel = None;
        let opened = self.link.channel().await;
        let (generation, channel) =
            opened.map_err(|error| PublishError::unavailable(error.to_string()))?;
        let confirming = channel.confirm_select(ConfirmSelectOptions::default());
        match timeout(self.link.timeouts().step, confirming).await {
            Ok(Ok(())) => {
                self.channel = Some((generation, channel.clone()));
                self.opened = Some(Instant::now());
                Ok(channel)
            }
            Ok(Err(error)) => Err(PublishError::unavailable(error.to_string())),
            Err(_) => Err(PublishError::unavailable("the broker does not confirm confirm mode")),
        }
    }

    fn channel_error(&mut self, reason: &str) -> PublishError {
        self.channel = None;
        PublishError::unavailable(reason)
    }

    fn timeout_error(&self, publication: &Publication) -> PublishError {
        PublishError::TimedOut {
            queue: publication.queue().to_owned(),
            after_ms: self.confirm.as_millis() as u64,
        }
    }
}

async fn write(channel: &Channel, publication: &Publication) -> lapin::Result<PublisherConfirm> {
    let options = BasicPublishOptions { mandatory: true, immediate: false };
    // Checked before it came here; the defaults would still be a harmless publication.
    let properties = publication.properties().write().unwrap_or_default();
    let queue = ShortString::try_new(publication.queue()).unwrap_or_default();
    channel.basic_publish("".into(), queue, options, publication.body(), properties).await
}

fn judge(confirmation: Confirmation, publication: &Publication) -> Verdict {
    Verdict::Settled(match confirmation {
        Confirmation::Ack(None) => Ok(()),
        Confirmation::Nack(None) => Err(refused_error(publication)),
        Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned)) => {
            let id = returned.properties.message_id().as_ref().map(ShortString::as_str);
            if id != publication.properties().message_id.as_deref() {
                return Verdict::OutOfStep;
            }
            Err(PublishError::Unroutable { queue: publication.queue().to_owned() })
        }
        Confirmation::NotRequested => {
            // Without confirm mode an answer has no meaning: never take it for a success.
            return Verdict::OutOfStep;
        }
    })
}

fn refused_error(publication: &Publication) -> PublishError {
    PublishError::Refused { queue: publication.queue().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::Properties;

    #[test]
    fn only_a_plain_ack_is_a_success() {
        let publication = Publication::new("q", Vec::new(), Properties::default());
        let verdict = |confirmation| judge(confirmation, &publication);
        assert_eq!(verdict(Confirmation::Ack(None)), Verdict::Settled(Ok(())));
        let refused = PublishError::Refused { queue: "q".to_owned() };
        assert_eq!(verdict(Confirmation::Nack(None)), Verdict::Settled(Err(refused)));
        // A forgotten confirm_select must not look like a confirmed publication.
        assert_eq!(verdict(Confirmation::NotRequested), Verdict::OutOfStep);
    }
}
