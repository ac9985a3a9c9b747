//! Listens for notifications of the database.
//!
//! A notification can be lost with its connection. So the loops that it wakes also poll (a worker finds a missed cancel
//! when it renews the lease), and run once whenever a connection begins to listen.

use std::time::Duration;

use sexton_store::notifications::{Listener, Notification};
use sexton_store::{Store, StoreError};
use tokio::time::timeout;

/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The connection is replaced after this long without a notification: the server may have vanished.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// Pause between two connections after a failure, before [jitter](crate::jitter::jittered).
pub const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// Listens over one connection, and calls `on_news` for each notification. `None` stands for notifications of
/// any kind: the connection has just begun to listen, or a payload of another version arrived. Returns when no
/// notification arrives for five minutes, or no connection is made within 15 s; the other statements decide whether
/// that is an outage.
///
/// # Errors
///
/// [`StoreError`]: the connection failed. Listen again, after a pause.
///
/// # Cancellation
///
/// Safe; notifications may be missed until the next call.
pub async fn listen(
    store: &Store,
    mut on_news: impl FnMut(Option<Notification>),
) -> Result<(), StoreError> {
    let Ok(connected) = timeout(CONNECT_TIMEOUT, Listener::connect(store)).await else {
        tracing::debug!(
            "no connection for notifications within {CONNECT_TIMEOUT:?}; it is tried again"
        );
        return Ok(());
    };
    let mut listener = connected?;
    on_news(None);
    while let Ok(news) = timeout(IDLE_TIMEOUT, listener.next()).await {
        on_news(news?);
    }
    Ok(())
}
