//! Listens for notifications of the database.
//!
//! A notification can be lost with its connection. So every listener also polls, and looks for work once whenever a
//! connection begins to listen.

use std::time::Duration;

use sexton_store::notifications::{Listener, Notification};
use sexton_store::timeout::with_timeout;
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
/// notification arrives for some minutes.
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
    let mut listener = with_timeout(CONNECT_TIMEOUT, Listener::connect(store)).await?;
    on_news(None);
    while let Ok(news) = timeout(IDLE_TIMEOUT, listener.next()).await {
        on_news(news?);
    }
    Ok(())
}
