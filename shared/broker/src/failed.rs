//! A cursor over the failed queue: takes each parked message once and keeps or removes it.
//!
//! A queue cannot be browsed. A message is taken, and then either removed or put back *at the tail*
//! as a clean copy: giving it back would put it at the head, where it would be taken next, for ever.
//! The pass ends after as many messages as there were at its beginning.
//!
//! A crash in the middle costs nothing: what was taken goes back to the queue; a copy that was
//! confirmed before its original was acknowledged is a duplicate, and duplicates of a ticket are
//! harmless.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use lapin::Channel;
use lapin::options::BasicGetOptions;
use tokio::time::timeout;

use crate::delivery::{AckOutcome, Delivery};
use crate::inspect::{InspectError, ask, is_missing};
use crate::link::Link;
use crate::names::failed_queue;
use crate::publish::{Publication, PublishError, Publisher};

/// One pass over the failed queue. Only one may run per namespace at a time, which the caller sees
/// to; two would hide messages from each other.
#[derive(Debug)]
pub struct FailedQueue {
    link: Link,
    publisher: Publisher,
    queue: String,
    channel: Channel,
    left: u32,
    held: Arc<AtomicUsize>,
}

/// A parked message, taken from the queue and not yet decided upon. Dropped undecided, it goes back
/// to the queue when the pass ends.
#[derive(Debug)]
pub struct Parked {
    /// The message. Its properties may be changed before [`FailedQueue::copy_to_tail`].
    pub delivery: Delivery,
}

/// A parked message that has a copy at the tail of the queue. Dropped, original and copy both stay.
#[derive(Debug)]
pub struct Copied {
    original: Delivery,
}

impl FailedQueue {
    /// Begins a pass: counts what is there and gets ready to take it.
    ///
    /// # Errors
    ///
    /// [`InspectError`]; nothing has been taken.
    pub async fn open(link: &Link, publisher: &Publisher) -> Result<Self, InspectError> {
        let opened = link.channel().await;
        let (_, channel) = opened.map_err(|error| InspectError::Unavailable(error.to_string()))?;
        let queue = failed_queue(link.namespace());
        let left = ask(link, &channel, &queue).await?.ready;
        let held = Arc::default();
        Ok(Self { link: link.clone(), publisher: publisher.clone(), queue, channel, left, held })
    }

    /// How many messages the pass will still take at most.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Takes the next message; `None` at the end of the pass. Dropping the future ends the pass: a
    /// message may have been taken unseen, which only the end of the channel gives back.
    ///
    /// # Errors
    ///
    /// [`InspectError`]; the pass is over.
    pub async fn next(&mut self) -> Result<Option<Parked>, InspectError> {
        if self.left == 0 {
            return Ok(None);
        }
        // Restored only by an answer, so that a pass which lost one does not go on.
        let left = std::mem::take(&mut self.left);
        let taking = self.channel.basic_get((*self.queue).into(), BasicGetOptions::default());
        match timeout(self.link.timeouts().step, taking).await {
            Ok(Ok(Some(taken))) => {
                self.left = left - 1;
                let close = self.link.timeouts().close;
                let channel = self.channel.clone();
                let delivery = Delivery::new(taken.delivery, channel, &self.held, close);
                Ok(Some(Parked { delivery }))
            }
            Ok(Ok(None)) => Ok(None),
            Ok(Err(error)) if is_missing(&error) => Err(InspectError::Missing(self.queue.clone())),
            Ok(Err(error)) => Err(InspectError::Unavailable(error.to_string())),
            Err(_) => Err(InspectError::Unavailable("no answer from the broker".to_owned())),
        }
    }

    /// The first half of leaving a message in the queue: a clean copy to the tail, confirmed. The
    /// other half is [`Self::drop_original`].
    ///
    /// # Errors
    ///
    /// [`PublishError`]; the original has gone back to the head then, and the pass should end.
    pub async fn copy_to_tail(&mut self, parked: Parked) -> Result<Copied, PublishError> {
        let Parked { mut delivery } = parked;
        let body = std::mem::take(&mut delivery.body);
        let copy = Publication::copy(&*self.queue, body, delivery.properties.clone());
        match self.publisher.publish_one(copy).await {
            Ok(()) => Ok(Copied { original: delivery }),
            Err(error) => {
                // Whether this is written or not, the message returns at the latest with the end of
                // the channel.
                let _ = delivery.give_back().await;
                Err(error)
            }
        }
    }

    /// Takes the original out of the queue; its copy stays.
    pub async fn drop_original(&mut self, copied: Copied) -> AckOutcome {
        copied.original.ack().await
    }

    /// Takes the message out of the queue for good.
    pub async fn remove(&mut self, parked: Parked) -> AckOutcome {
        parked.delivery.ack().await
    }

    /// Asks something of the broker that it answers after all that the pass has told it: with the answer it
    /// has taken what was acknowledged.
    ///
    /// # Errors
    ///
    /// [`InspectError`]: what was acknowledged may be in the queue again.
    pub async fn acks_arrived(&self) -> Result<(), InspectError> {
        ask(&self.link, &self.channel, &self.queue).await.map(|_| ())
    }
}
