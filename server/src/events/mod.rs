//! `GET /events`: tells open pages that something has changed.
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

pub use self::hub::{Heard, Hub, Listener};
pub use self::topic::{MAX_TOPICS, Topic, parse_topics};

/// Age at which a stream ends. The page opens another one, and so who sees what is decided anew.
const MAX_AGE: Duration = Duration::from_mins(5);
/// How soon a page comes back after a stream has ended.
const RETRY: Duration = Duration::from_secs(1);
/// How often a stream that has nothing to say sends a comment, so that neither side takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers with a stream of what `listener` hears. With `resumed`, the page was open before, and may have missed something.
pub fn follow(listener: Listener, resumed: bool) -> Response {
    let ends = Instant::now() + MAX_AGE;
    let events = stream::unfold((listener, resumed), move |(mut listener, resumed)| async move {
        let heard = timeout_at(ends, listener.hear()).await.ok().flatten()?;
        Some((Ok::<_, Infallible>(event(heard, resumed)), (listener, false)))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    (NO_BUFFER, Sse::new(events).keep_alive(keep_alive)).into_response()
}

/// Proxies of the nginx kind pass each event on at once.
const NO_BUFFER: [(&str, &str); 1] = [("x-accel-buffering", "no")];

fn event(heard: Heard, resumed: bool) -> Event {
    let name = match heard {
        Heard::Began if resumed => "resync",
        Heard::Began => "began",
        Heard::Changed => "changed",
        Heard::Lost => "lost",
        Heard::Found => "resync",
    };
    // An id makes the browser say when it comes back, so that the page is fetched then.
    Event::default().event(name).id("1").retry(RETRY).data("1")
}
