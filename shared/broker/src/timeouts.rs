//! Time limits for the steps with the broker.

use std::time::Duration;

/// Limits for every await on the broker. The defaults suit production; tests shorten them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first packet to an open connection, default 15 s.
    pub connect: Duration,
    /// One declare, channel opening, consume or passive declare, default 30 s.
    pub step: Duration,
    /// From writing a publication to its confirm, default 30 s. A broker with a memory or disk alarm does not answer
    /// at all, so a publication hangs for this long then.
    pub confirm: Duration,
    /// The same for a queue that has not confirmed before, default 5 s: one publication probes it each time that
    /// `confirm` has passed, and the others for it fail at once.
    pub probe: Duration,
    /// A cancel, an ack or a close, default 5 s: these delay a shutdown.
    pub close: Duration,
    /// How long a slot waits in silence before it checks whether its queue is really empty, default 10 s.
    pub idle_check: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            step: Duration::from_secs(30),
            confirm: Duration::from_secs(30),
            probe: Duration::from_secs(5),
            close: Duration::from_secs(5),
            idle_check: Duration::from_secs(10),
        }
    }
}
