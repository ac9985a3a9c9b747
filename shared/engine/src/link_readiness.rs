//! Shows a link to the broker in `/readyz` and in the metrics. The link itself logs its outages.

use std::convert::Infallible;

use sexton_broker::{Link, LinkState};
use sexton_service::clock;
use sexton_service::health::Condition;
use sexton_service::metrics::table;

/// Keeps `condition`, and the metric of the link `name`, equal to the link's state. Never returns: the caller
/// detects a link that has failed for good with [`Link::failed`].
///
/// # Cancellation
///
/// Dropping the future leaves both as they are.
pub async fn mirror_link(link: &Link, name: &'static str, condition: &Condition) -> Infallible {
    let mut state = link.state();
    loop {
        show(&state.borrow_and_update(), name, condition);
        if state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn show(state: &LinkState, name: &'static str, condition: &Condition) {
    let is_up = matches!(state, LinkState::Up { .. });
    table::BROKER_CONNECTED.set([name], if is_up { 1.0 } else { 0.0 });
    match state {
        LinkState::Up { .. } => condition.ready(clock::now()),
        LinkState::Down { reason } => {
            condition.not_ready(reason.as_deref().unwrap_or("not connected yet"), clock::now());
        }
        LinkState::Fatal(error) => condition.not_ready(&error.to_string(), clock::now()),
        LinkState::Closed => condition.not_ready("closed", clock::now()),
    }
}
