//! Counts messages without consuming any.
//!
//! It declares queues passively, which does not need the management plugin. The broker does not count delivered,
//! unacknowledged messages here; the rows know them.

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Channel, ErrorKind};
use tokio::time::timeout;

use crate::link::Link;

const NOT_FOUND: u16 = 404;

/// The depth of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Messages that wait for a consumer.
    pub ready: u32,
    /// Consumers of all programs.
    pub consumers: u32,
}

/// Why a queue could not be inspected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// It does not exist.
    #[error("queue {0} does not exist on the broker")]
    Missing(String),
    /// The connection is lost, or the broker did not answer. Try again later.
    #[error("inspect: {0}")]
    Unavailable(String),
}

impl Link {
    /// Returns the current depth of a queue. Callers take turns on one channel.
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
        // Put back only after an answer: a late one would be taken for that of the next request.
        let depth = declare_passively(self, &channel, queue).await?;
        *cached = Some((generation, channel));
        Ok(depth)
    }
}

pub(crate) async fn declare_passively(
    link: &Link,
    channel: &Channel,
    queue: &str,
) -> Result<Depth, InspectError> {
    let options = QueueDeclareOptions::durable().passive();
    let declare = channel.queue_declare(queue.into(), options, FieldTable::default());
    match timeout(link.timeouts().step, declare).await {
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
