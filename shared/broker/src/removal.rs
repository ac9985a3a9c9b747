//! Removes a whole namespace, with every message in it.

use std::time::Duration;

use sexton_model::pool::PoolName;

use crate::link::Link;
use crate::topology::{self, TopologyError};

/// How long the removal waits after the program that declared the namespace has ended.
///
/// RabbitMQ completes a declaration even after the connection that requested it has closed. A queue that is deleted
/// meanwhile crashes the process that forwards its dead letters, and in 3.10 two such crashes within five seconds end
/// the forwarding for all queues with a dead-letter strategy on that node until it is restarted
/// (`rabbit_fifo_dlx_sup`, github.com/rabbitmq/rabbitmq-server issue 16652). AMQP does not show whether a declaration
/// is under way; without load it takes milliseconds.
const DECLARATION_SETTLE_TIME: Duration = Duration::from_secs(2);

impl Link {
    /// Deletes the queues and the exchange of this link's namespace, with every message in them; missing ones are no
    /// error. No other program may be using the namespace. Queues of pools that are not named stay. It begins with a
    /// wait of two seconds.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]; earlier deletions stay, and the call can be repeated.
    pub async fn remove_namespace(&self, pools: &[PoolName]) -> Result<(), TopologyError> {
        tokio::time::sleep(DECLARATION_SETTLE_TIME).await;
        let opened = self.channel().await;
        let (_, channel) = opened.map_err(|error| TopologyError::Broker {
            what: format!("the removal of {}", self.namespace()),
            reason: error.to_string(),
        })?;
        topology::delete(&channel, self.namespace(), pools, self.timeouts().step).await
    }
}
