//! What excludes what: the lock, the lease, the timeout.

use super::{Gap, Section};
use crate::duration;
use crate::job::{JobSpec, OnLocked, Overlap, RowLock, Schedule};

pub(super) fn section(job: &JobSpec) -> Section {
    let (mut statements, mut missing) = (Vec::new(), Vec::new());
    let lock = match (job.lock_key, &job.lock_row) {
        (Some(key), _) => Some(format!(
            "While its task runs, the worker holds the advisory lock {key}; the task is killed if the lock is lost."
        )),
        (None, Some(row)) => Some(row_lock(row)),
        (None, None) => None,
    };
    match lock {
        Some(lock) => statements.extend([lock, on_locked(job.on_locked).to_owned()]),
        None if job.overlap == Overlap::Allow && job.schedule != Schedule::None => {
            let what = "no lock, and overlap = \"allow\": two of its executions can run at the same time";
            let write = "overlap = \"skip\" or \"queue\", or lock_key";
            missing.push(Gap::new(what, "Write", write));
        }
        None => statements.push(
            "It has no lock: nothing keeps triggers, or programs outside of Sexton, from doing the same meanwhile."
                .to_owned(),
        ),
    }
    let lease =
        job.lease.map_or_else(|| "20s, or its worker's LEASE_MS,".to_owned(), duration::format);
    statements.push(format!(
        "An attempt that its worker does not renew for {lease} is lost, and another begins; a worker that cannot renew kills \
         the task before."
    ));
    let timeout = duration::format(job.timeout);
    statements.push(format!("An attempt is stopped after {timeout} (`timeout`)."));
    Section { title: "Lock and lease", statements, missing }
}

fn row_lock(lock: &RowLock) -> String {
    let RowLock { name, at_most, at_least } = lock;
    let least = match duration::format(*at_least) {
        _ if at_least.is_zero() => String::new(),
        time => format!(", and at least for {time}"),
    };
    format!(
        "While its task runs, the worker holds the lock row {name:?}{least}; after its death the row stays locked for up to {}.",
        duration::format(*at_most)
    )
}

const fn on_locked(policy: OnLocked) -> &'static str {
    match policy {
        OnLocked::Skip => "An execution whose lock is held elsewhere is skipped.",
        OnLocked::Wait => "An execution whose lock is held elsewhere waits and tries again.",
    }
}
