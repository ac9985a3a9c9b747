//! Checks for overdue unpublished tickets, and for schedulers that publish them.

use super::MAX_HEARTBEAT_AGE_MS;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};
use crate::text::{ago, duration};

/// A ticket is published within a second or so, and by the relay after five.
const MAX_UNPUBLISHED_MS: i64 = 60_000;

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(rows) = facts.rows() else { return };
    let overview = &rows.overview;
    let of_schedulers = || rows.processes.iter().filter(|process| process.kind == "scheduler");
    let at_work = of_schedulers().any(|process| process.silent_ms <= MAX_HEARTBEAT_AGE_MS);
    if !at_work {
        let last = of_schedulers().map(|process| process.silent_ms).min().map_or_else(
            || "none has sent a heartbeat".to_owned(),
            |ms| format!("the last heartbeat was {} ago", duration(ms)),
        );
        let text = format!(
            "{last}; {} active jobs, {} tickets are unpublished",
            overview.jobs_active, overview.unpublished
        );
        found.push(Finding::new(Code::NoScheduler, text));
    }
    if let Some(ms) = overview.oldest_unpublished_ms.filter(|ms| *ms > MAX_UNPUBLISHED_MS) {
        let text =
            format!("{} are unpublished, the oldest for {}", overview.unpublished, duration(ms));
        found.push(Finding::new(Code::TicketsUnpublished, text));
    }
    for overdue in &rows.overdue {
        let ready = facts
            .broker
            .as_ref()
            .ok()
            .and_then(|broker| broker.examined.main_ready.get(overdue.pool.as_str()).copied());
        // In a queue that is not empty they may just wait for their turn, which the reconciler knows.
        let text = format!(
            "{} of pool {}, the first due {}; its main queue holds {}",
            overdue.tickets,
            overdue.pool,
            ago(overdue.oldest_due, overview.now),
            ready.map_or_else(|| "nothing that is known".to_owned(), |ready| ready.to_string())
        );
        let finding = Finding::new(Code::TicketsLost, text);
        found.push(if facts.broker.is_ok() { finding } else { finding.without_fix() });
    }
    if rows.leases.overdue > 0 {
        let since = rows.leases.oldest.map_or_else(String::new, |at| ago(at, overview.now));
        let text = format!("{}, the first since {since}", rows.leases.overdue);
        found.push(Finding::new(Code::LeasesOverdue, text));
    }
}
