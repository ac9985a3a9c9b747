//! Listens for news from the database.
//!
//! A notification can be lost with its connection. So every listener also polls, and looks for work once whenever a
//! connection begins to listen.

use std::time::Duration;

use sexton_store::notifications::{Listener, Notification};
use sexton_store::timeout::with_timeout;
use sexton_store::{Store, StoreError};
use tokio::time::timeout;

/// For connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// After so long without news the connection is made anew: the other side may be gone without a word.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// Between two connections after a failure, before it is [varied](crate::jitter::jittered).
pub const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// Listens over one connection, and calls `on_news` for each notification. `None` means any kind of news: the
/// connection begins to listen, or a payload of another version came. Returns after a long silence.
///
/// # Errors
///
/// [`StoreError`]: there is no connection (any more). Listen again, after a pause.
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
