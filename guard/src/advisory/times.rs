//! How long everything takes that has to do with the connection of the locks, and the order of these times.
//!
//! ```text
//! 0 s   the client sends a ping (or any statement), and the server receives it
//! 2 s   the next ping
//! 8 s   no ping since was answered: the client counts its locks as lost, and ends the work
//! 11 s  the client closes the connection, with work that has not ended yet
//! 12 s  the server has heard nothing since 0 s: it ends the session, and frees the locks (at the latest after 14 s)
//! ```
//!
//! The server counts from when it last heard from the client, which is after the client sent. So a lock is free on the
//! server only when the work has had four seconds to end.

use std::time::Duration;

/// Between two pings while a lock is held.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(2);
/// Between two pings while none is.
pub(super) const IDLE_PING_INTERVAL: Duration = Duration::from_secs(15);
/// How long an answer proves the locks, from when its request was sent.
pub(super) const CERTAIN_FOR: Duration = Duration::from_secs(8);
/// From a loss until the connection is closed, if work has not ended before.
pub(super) const WORK_END_TIMEOUT: Duration = Duration::from_secs(3);
/// After this silence the server ends the session.
pub(super) const SERVER_TIMEOUT: Duration = Duration::from_secs(12);
/// After this silence the server sends the first probe to the client, then one at each interval.
pub(super) const KEEPALIVE_IDLE: Duration = Duration::from_secs(6);
/// Between two such probes.
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
/// For a connection and its check.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For a statement, on the client's side.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// For a statement, on the server's side; shorter, so that one that hangs does not cost the other locks.
pub(super) const SERVER_STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);
/// For a call: those before it on the connection, a new connection, and its own statement.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_ends_before_the_server_frees_its_locks() {
        assert!(CERTAIN_FOR + WORK_END_TIMEOUT < SERVER_TIMEOUT);
        assert_eq!(KEEPALIVE_IDLE + 3 * KEEPALIVE_INTERVAL, SERVER_TIMEOUT);
        assert!(3 * PING_INTERVAL < CERTAIN_FOR, "two pings may be lost");
        assert!(SERVER_STATEMENT_TIMEOUT < STATEMENT_TIMEOUT && STATEMENT_TIMEOUT < CERTAIN_FOR);
        assert!(IDLE_PING_INTERVAL > PING_INTERVAL);
    }
}
