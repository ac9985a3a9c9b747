//! Parked messages whose properties the client library cannot parse: a pass must get past them.

use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::sweep::{SweepReport, Tally};

use super::{Fixture, now, parked_messages, pass_of, sweep};
use crate::bad_input::properties::{HEADERS, TOO_LARGE, flat};
use crate::bad_input::raw;

#[tokio::test]
async fn headers_larger_than_a_frame_stay_without_them_and_the_pass_goes_on() {
    let f = Fixture::new().await;
    let (url, queue) = (f.namespace.url().to_owned(), f.namespace.failed());
    let publishing = move || {
        for bytes in TOO_LARGE {
            raw::publish(&url, &queue, HEADERS, &flat(bytes), b"<xml/>");
        }
    };
    tokio::task::spawn_blocking(publishing).await.unwrap();
    let sweep = sweep(&f);
    // A lost connection would have ended the pass with an error.
    let tally = pass_of(&sweep).await;
    assert_eq!(tally, Tally { unknown: 3, complete: true, ..Tally::default() });
    assert_eq!(sweep.run_once(now(100)).await.unwrap(), SweepReport::NotDue);
    assert_eq!(parked_messages(&f).await.len(), TOO_LARGE.len());
}
