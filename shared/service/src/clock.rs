//! The wall clock of this host.
//!
//! The only module that reads it; everything else takes `now` as an argument, so that a test can set the time.
//! PostgreSQL's clock, never this one, decides what is due, because hosts disagree. No wall clock decides whether a
//! lease is over. This one serves texts for people: "since when", "how long ago".

use chrono::{DateTime, Utc};

/// Returns the present instant by this host's clock, which may be off by any amount.
#[expect(clippy::disallowed_methods, reason = "the one place where ambient time enters")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}
