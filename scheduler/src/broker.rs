//! Mirrors the broker's link in `/readyz`, and ends the process when the link can never come up.

use sexton_broker::{Link, LinkState, TopologyError};
use sexton_service::clock;
use sexton_service::health::Condition;
use tokio_util::sync::CancellationToken;

/// Follows the link until the shutdown. The link itself logs its outages.
///
/// # Errors
///
/// [`TopologyError`]: a queue exists with other arguments; the message says what to do.
pub(crate) async fn follow(
    link: Link,
    condition: Condition,
    soft: CancellationToken,
) -> Result<(), TopologyError> {
    let mut state = link.state();
    loop {
        match &*state.borrow_and_update() {
            LinkState::Up { .. } => condition.ready(clock::now()),
            LinkState::Down { reason } => {
                condition.not_ready(reason.as_deref().unwrap_or("connecting"), clock::now());
            }
            LinkState::Fatal(error) => return Err(error.clone()),
            LinkState::Closed => condition.not_ready("closed", clock::now()),
        }
        tokio::select! {
            () = soft.cancelled() => return Ok(()),
            changed = state.changed() => if changed.is_err() {
                soft.cancelled().await;
                return Ok(());
            },
        }
    }
}
