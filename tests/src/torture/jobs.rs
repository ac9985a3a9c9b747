//! The load of an arena.

/// The pool of both workers.
pub(super) const VICTIM_POOL: &str = "victims";
/// The pool without workers: its tickets stay in the queue for a client.
pub(super) const UNSERVED_POOL: &str = "nobodys";

/// Fires every second, one execution at a time; both workers run it.
pub(super) const NON_OVERLAPPING: &str = "torture.alone";
/// Fires every second whatever is under way; the peer runs it.
pub(super) const LOAD: &str = "torture.load";
/// Fires every second, one execution at a time, and one waits; both workers run it.
pub(super) const QUEUED: &str = "torture.queued";
/// Has no schedule; the run triggers it.
pub(super) const TRIGGERED: &str = "torture.hand";
/// Is triggered, and waits long before a retry.
pub(super) const LONG_RETRY: &str = "torture.patient";
/// Is triggered, and has a lease a little longer than any statement's limit: the second open comes
/// when nearly all of it is over, and without a renewal first the next renewal comes after a
/// scheduler has ended the attempt.
pub(super) const LONG_LEASE: &str = "torture.leased";
/// Is triggered, and no worker consumes its tickets.
pub(super) const UNSERVED: &str = "torture.nobody";

/// Is triggered, and is a statement.
pub(super) const STATEMENT: &str = "torture.statement";

/// Is triggered, has an effect that must not happen twice, and a verify task that looks for it.
pub(super) const CHARGED: &str = "torture.charged";

/// Is triggered, and each of its executions begins a flow with one of [`TRIGGERED`].
pub(super) const FLOW: &str = "torture.flow";

/// All jobs.
pub(super) const ALL: [&str; 10] = [
    NON_OVERLAPPING,
    LOAD,
    QUEUED,
    TRIGGERED,
    LONG_RETRY,
    LONG_LEASE,
    UNSERVED,
    STATEMENT,
    CHARGED,
    FLOW,
];

/// Without jitter, so that the rows show an open before its time. Each has a deadline that some faults let pass, and others not.
pub(super) const FILE: &str = r#"
[[job]]
name = "torture.alone"
expect_within = "6s"
task = "work"
pool = "victims"
every = "1s"
overlap = "skip"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.load"
expect_within = "6s"
task = "work"
every = "1s"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.queued"
expect_within = "6s"
task = "work"
pool = "victims"
every = "1s"
overlap = "queue"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.hand"
expect_within = "6s"
task = "work"
pool = "victims"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.patient"
expect_within = "6s"
task = "work"
pool = "victims"
retry = { delay = "8s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.leased"
expect_within = "6s"
task = "work"
pool = "victims"
lease = "11s"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.nobody"
expect_within = "6s"
task = "work"
pool = "nobodys"
stale_after = "1m"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.statement"
expect_within = "6s"
task = "statement"
pool = "victims"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.charged"
expect_within = "6s"
task = "charge"
verify = "charged"
pool = "victims"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[job]]
name = "torture.flow"
expect_within = "6s"
task = "work"
pool = "victims"
retry = { delay = "1s", multiplier = 1.0, jitter = 0.0, max_retries = 5 }

[[flow]]
job = "torture.flow"
[[flow.member]]
name = "then"
job = "torture.hand"
after = ["start"]
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_jobs_that_are_named() {
        for job in ALL {
            assert!(FILE.contains(&format!("name = \"{job}\"")), "{job}");
        }
        assert_eq!(FILE.matches("[[job]]").count(), ALL.len());
    }
}
