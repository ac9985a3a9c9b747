//! The wall clock of this host.
//!
//! The only module that reads it; everything else takes `now` as an argument, so that a test can
//! say what time it is. What is due is never decided by this clock but by PostgreSQL's: hosts disagree.
//! Whether a lease is over is decided by no wall clock at all. It serves what people read: "since when", "how
//! long ago".

use chrono::{DateTime, Utc};

/// The present instant by this host's clock, which may be off by any amount.
#[expect(clippy::disallowed_methods, reason = "the one place where ambient time enters")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}
