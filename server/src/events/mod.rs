//! `GET /events`: notifies open pages that something has changed.
//!
//! A stream carries no data, so it needs no rules of its own about who may see what: a page fetches itself again.

mod hub;
mod topic;

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use tokio::time::{Instant, timeout_at};

pub use self::hub::{Hub, Listener, Sign};
pub use self::topic::{MAX_TOPICS, Topic, parse_topics};

/// Age at which a stream ends. The page opens another one, and so who sees what is decided anew.
const MAX_AGE: Duration = Duration::from_mins(5);
/// How soon a page comes back after a stream has ended.
const RETRY: Duration = Duration::from_secs(1);
/// How often a stream that has nothing to say sends a comment, so that neither side takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers with a stream of what happens to the topics of `listener`.
pub fn follow(listener: Listener) -> Response {
    let ends = Instant::now() + MAX_AGE;
    let events = stream::unfold(listener, move |mut listener| async move {
        let sign = timeout_at(ends, listener.next()).await.ok().flatten()?;
        Some((Ok::<_, Infallible>(event(sign)), listener))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    (NO_BUFFER, Sse::new(events).keep_alive(keep_alive)).into_response()
}

/// Proxies of the nginx kind pass each event on at once.
const NO_BUFFER: [(&str, &str); 1] = [("x-accel-buffering", "no")];

fn event(sign: Sign) -> Event {
    let name = match sign {
        Sign::Changed => "changed",
        Sign::Lost => "lost",
    };
    Event::default().event(name).retry(RETRY).data("1")
}
