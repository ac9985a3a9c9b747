//! Sets a consumer up on a channel, and cancels it.

use futures_util::StreamExt;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Consumer};

use crate::delivery::return_to_queue;
use crate::inspect::is_missing;
use crate::link::Link;

/// Sets a consumer up, on the previous channel if that is still open.
pub(crate) async fn attach(
    link: &Link,
    queue: &str,
    prefetch: u16,
    reusable: Option<(u64, Channel)>,
) -> Result<(u64, Channel, Consumer), String> {
    let reusable = reusable.filter(|(generation, channel)| {
        *generation == link.generation() && channel.status().connected()
    });
    let (generation, channel) = match reusable {
        Some(reusable) => reusable,
        None => link.channel().await.map_err(|error| error.to_string())?,
    };
    let words = |error: lapin::Error| error.to_string();
    // Before consuming, because it applies only to consumers started afterwards.
    channel.basic_qos(prefetch, BasicQosOptions { global: false }).await.map_err(words)?;
    let consuming = channel.basic_consume(
        queue.into(),
        "".into(),
        BasicConsumeOptions::default(),
        FieldTable::default(),
    );
    match consuming.await {
        Ok(stream) => Ok((generation, channel, stream)),
        Err(error) if is_missing(&error) => {
            link.redeclare().await.map_err(|error| error.to_string())?;
            Err(format!("queue {queue} did not exist; the topology has been declared again"))
        }
        Err(error) => Err(words(error)),
    }
}

/// Cancels the consumer and returns messages delivered meanwhile; `false` if the channel does not allow it.
pub(crate) async fn cancel(channel: Channel, mut stream: Consumer) -> bool {
    if channel.basic_cancel(stream.tag(), BasicCancelOptions::default()).await.is_err() {
        return false;
    }
    // After cancel-ok no message is added; the stream ends after the earlier ones.
    while let Some(item) = stream.next().await {
        match item {
            Ok(raw) => match return_to_queue(&raw.acker).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return false,
            },
            Err(_) => return false,
        }
    }
    true
}
