//! Counting messages without taking any.
//!
//! By passive declare, so that the management plugin is never needed. What is delivered but not yet
//! acknowledged is not counted by the broker here; the rows know it.

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Channel, ErrorKind};
use tokio::time::timeout;

use crate::link::Link;

const NOT_FOUND: u16 = 404;

/// How full a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Messages that wait for a consumer.
    pub ready: u32,
    /// Consumers of all programs.
    pub consumers: u32,
}

/// Why a queue could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// It does not exist.
    #[error("queue {0} does not exist on the broker")]
    Missing(String),
    /// There is no connection, or no answer. Try again later.
    #[error("inspect: {0}")]
    Unavailable(String),
}

impl Link {
    /// Counts what is in a queue now. Callers take turns on one channel.
    ///
    /// # Errors
    ///
    /// [`InspectError`].
    pub async fn depth(&self, queue: &str) -> Result<Depth, InspectError> {
        let mut cached = self.inspection().lock().await;
        let usable = cached.take().filter(|(generation, channel)| {
            *generation == self.generation() && channel.status().connected()
        });
        let (generation, channel) = match usable {
            Some(usable) => usable,
            None => self
                .channel()
                .await
                .map_err(|error| InspectError::Unavailable(error.to_string()))?,
        };
        // Put back only after an answer: a late one would be taken for the next question's.
        let depth = ask(self, &channel, queue).await?;
        *cached = Some((generation, channel));
        Ok(depth)
    }
}

pub(crate) async fn ask(
    link: &Link,
    channel: &Channel,
    queue: &str,
) -> Result<Depth, InspectError> {
    let options = QueueDeclareOptions::durable().passive();
    let asking = channel.queue_declare(queue.into(), options, FieldTable::default());
    match timeout(link.timeouts().step, asking).await {
        Ok(Ok(found)) => {
            Ok(Depth { ready: found.message_count(), consumers: found.consumer_count() })
        }
        Ok(Err(error)) if is_missing(&error) => Err(InspectError::Missing(queue.to_owned())),
        Ok(Err(error)) => Err(InspectError::Unavailable(error.to_string())),
        Err(_) => Err(InspectError::Unavailable("no answer from the broker".to_owned())),
    }
}

pub(crate) fn is_missing(error: &lapin::Error) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(e) if e.get_id() == NOT_FOUND)
}
