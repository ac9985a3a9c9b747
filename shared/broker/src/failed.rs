//! A pass over the failed queue: takes each parked message once and keeps or removes it.
//!
//! A queue cannot be browsed. Messages are taken, some at a time, and then either removed or put back *at the tail*
//! as clean copies: a returned message would go to the head, from which the next get takes it, for ever. The pass
//! ends after as many messages as the queue had at its beginning.
//!
//! A crash in the middle costs nothing: taken messages return to the queue; copies that were published before their
//! originals were acknowledged are duplicates, at most as many as were copied together, and duplicates of a ticket
//! are harmless.

mod batch_size;

use std::sync::Arc;

use futures_util::future::join_all;
use lapin::Channel;
use lapin::options::BasicGetOptions;
use tokio::time::timeout;

use batch_size::BatchSize;

use crate::delivery::{AckOutcome, Delivery, HeldDeliveries};
use crate::inspect::{InspectError, declare_passively, is_missing};
use crate::link::Link;
use crate::names::failed_queue;
use crate::publish::{Publication, PublishError, Publisher};

/// One pass over the failed queue. The caller ensures that only one runs per namespace at a time; two would hide
/// messages from each other.
#[derive(Debug)]
pub struct FailedQueue {
    link: Link,
    publisher: Publisher,
    queue: String,
    channel: Channel,
    left: u32,
    held_deliveries: Arc<HeldDeliveries>,
    batch_size: BatchSize,
}

/// A parked message, taken from the queue and not yet kept or removed. After a drop, it returns to the queue when the
/// pass ends.
#[derive(Debug)]
pub struct ParkedMessage {
    /// The message. Its properties may be changed before [`FailedQueue::copy_to_tail`].
    pub delivery: Delivery,
}

/// A parked message that has a copy at the tail of the queue. After a drop, original and copy both stay.
#[derive(Debug)]
pub struct CopiedMessage {
    original: Delivery,
}

impl FailedQueue {
    /// Begins a pass: counts the queue's messages and prepares to take them.
    ///
    /// # Errors
    ///
    /// [`InspectError`]; nothing has been taken.
    pub async fn open(link: &Link, publisher: &Publisher) -> Result<Self, InspectError> {
        let opened = link.channel().await;
        let (_, channel) = opened.map_err(|error| InspectError::Unavailable(error.to_string()))?;
        let queue = failed_queue(link.namespace());
        let left = declare_passively(link, &channel, &queue).await?.ready;
        let (held_deliveries, batch_size) = (Arc::default(), BatchSize::INITIAL);
        let (link, publisher) = (link.clone(), publisher.clone());
        Ok(Self { link, publisher, queue, channel, left, held_deliveries, batch_size })
    }

    /// Returns the maximum number of messages that the pass will still take.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Takes the next messages, at most `max_messages`, and fewer if they are long; none at the end of the pass. One
    /// round trip gets them, in their order. Dropping the future ends the pass: messages may have been taken unseen,
    /// which only the end of the channel returns.
    ///
    /// # Errors
    ///
    /// [`InspectError`]; the pass is over.
    pub async fn take(&mut self, max_messages: usize) -> Result<Vec<ParkedMessage>, InspectError> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        loop {
            let wanted = (max_messages - taken.len()).min(self.left as usize);
            let requested = self.batch_size.next_size(wanted, taken.len(), bytes);
            if requested == 0 {
                return Ok(taken);
            }
            let received = self.get(requested).await?;
            let lengths = received.iter().map(|parked| parked.delivery.body.len());
            self.batch_size.record_batch(received.len(), lengths.clone().max().unwrap_or_default());
            bytes += lengths.sum::<usize>();
            taken.extend(received);
        }
    }

    /// Gets up to `requested` messages in one round trip. Fewer mean that the queue is empty: the pass ends with
    /// them.
    async fn get(&mut self, requested: usize) -> Result<Vec<ParkedMessage>, InspectError> {
        // Restored only by the answers, so that a pass that lost one ends.
        let left = std::mem::take(&mut self.left);
        let one = || self.channel.basic_get((*self.queue).into(), BasicGetOptions::default());
        let requests = join_all((0..requested).map(|_| one()));
        let Ok(answers) = timeout(self.link.timeouts().step, requests).await else {
            return Err(InspectError::Unavailable("no answer from the broker".to_owned()));
        };
        let close = self.link.timeouts().close;
        let mut received = Vec::with_capacity(requested);
        for answer in answers {
            match answer {
                Ok(Some(taken)) => {
                    let channel = self.channel.clone();
                    let delivery =
                        Delivery::new(taken.delivery, channel, &self.held_deliveries, close);
                    received.push(ParkedMessage { delivery });
                }
                Ok(None) => {}
                Err(error) if is_missing(&error) => {
                    return Err(InspectError::Missing(self.queue.clone()));
                }
                Err(error) => return Err(InspectError::Unavailable(error.to_string())),
            }
        }
        if received.len() == requested {
            self.left = left - requested as u32;
        }
        Ok(received)
    }

    /// The first half of keeping messages: publishes clean copies to the tail, confirmed, and in their order if there
    /// are at most [`crate::publish::MAX_ORDERED_BATCH`]. The other half is [`Self::drop_originals`], for those whose
    /// copy was confirmed; with the first error of the others, which are held until the pass ends, as it should now.
    pub async fn copy_to_tail(
        &self,
        parked: Vec<ParkedMessage>,
    ) -> (Vec<CopiedMessage>, Option<PublishError>) {
        let mut originals = Vec::with_capacity(parked.len());
        let mut publications = Vec::with_capacity(parked.len());
        for ParkedMessage { mut delivery } in parked {
            let body = std::mem::take(&mut delivery.body);
            publications.push(Publication::copy(&*self.queue, body, delivery.properties.clone()));
            originals.push(delivery);
        }
        let answers = self.publisher.publish(publications).await;
        let (mut copied, mut first) = (Vec::with_capacity(originals.len()), None);
        for (original, answer) in originals.into_iter().zip(answers) {
            match answer {
                Ok(()) => copied.push(CopiedMessage { original }),
                Err(error) => first = first.or(Some(error)),
            }
        }
        (copied, first)
    }

    /// Removes the originals from the queue; their copies stay.
    pub async fn drop_originals(&self, copied: Vec<CopiedMessage>) -> AckOutcome {
        acknowledge(copied.into_iter().map(|one| one.original)).await
    }

    /// Removes messages from the queue for good.
    pub async fn remove(&self, parked: Vec<ParkedMessage>) -> AckOutcome {
        acknowledge(parked.into_iter().map(|one| one.delivery)).await
    }

    /// Makes a request that the broker answers after everything before it on the channel: with the answer it has
    /// processed the acknowledgements.
    ///
    /// # Errors
    ///
    /// [`InspectError`]: acknowledged messages may be in the queue again.
    pub async fn wait_for_acks(&self) -> Result<(), InspectError> {
        declare_passively(&self.link, &self.channel, &self.queue).await.map(|_| ())
    }
}

/// Acknowledges all at once, each by itself: messages between them are not decided yet.
async fn acknowledge(deliveries: impl Iterator<Item = Delivery>) -> AckOutcome {
    let outcomes = join_all(deliveries.map(Delivery::ack)).await;
    let lost = outcomes.contains(&AckOutcome::ChannelGone);
    if lost { AckOutcome::ChannelGone } else { AckOutcome::Written }
}
