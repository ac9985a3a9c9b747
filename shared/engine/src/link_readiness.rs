//! Shows a link to the broker in `/readyz` and in the metrics. The link itself logs its outages.

use std::convert::Infallible;

use sexton_broker::{Link, LinkState};
use sexton_service::clock;
use sexton_service::health::Condition;
use sexton_service::metrics::table;

/// Keeps `condition`, and the metric of the link `name`, equal to the link's state. Never returns: the caller detects a link that has failed for
/// good with [`Link::failed`].
///
/// # Cancellation
///
/// Dropping the future leaves the condition as it is.
pub async fn mirror_link(link: &Link, name: &'static str, condition: &Condition) -> Infallible {
    let mut state = link.state();
    loop {
        let is_up = matches!(&*state.borrow(), LinkState::Up { .. });
        table::BROKER_CONNECTED.set([name], f64::from(u8::from(is_up)));
        match &*state.borrow_and_update() {
            LinkState::Up { .. } => condition.ready(clock::now()),
            LinkState::Down { reason } => {
                condition.not_ready(reason.as_deref().unwrap_or("not connected yet"), clock::now());
            }
            LinkState::Fatal(error) => condition.not_ready(&error.to_string(), clock::now()),
            LinkState::Closed => condition.not_ready("closed", clock::now()),
        }
        if state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
