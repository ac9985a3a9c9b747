//! The checks, one file per group. Each is a pure function of the facts.

pub(super) mod approvals;
pub(super) mod audit;
pub(super) mod capacity;
pub(super) mod connections;
pub(super) mod failed_queue;
pub(super) mod locks;
pub(super) mod outbox;
pub(super) mod permissions;
pub(super) mod policies;
pub(super) mod processes;
pub(super) mod schema;
pub(super) mod time;
pub(super) mod topology;
pub(super) mod verify_tasks;

/// Maximum age of a heartbeat, which a process writes every few seconds.
const MAX_HEARTBEAT_AGE_MS: i64 = 60_000;

/// Joins the first items, as in `a, b and 3 more`.
fn join_first<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    const MAX_LISTED: usize = 5;
    let mut items = items.into_iter();
    let mut text: Vec<String> =
        items.by_ref().take(MAX_LISTED).map(|item| item.to_string()).collect();
    let more = items.count();
    if more > 0 {
        text.push(format!("and {more} more"));
    }
    text.join(", ")
}
