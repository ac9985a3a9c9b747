//! Checks for schedulers and workers that are silent, not ready, or of another version.

use super::{MAX_HEARTBEAT_AGE_MS, join_first};
use crate::doctor::facts::Facts;
use crate::doctor::fix::MARK_STOPPED_AFTER_MS;
use crate::doctor::{Code, Finding};
use crate::text::duration;

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(rows) = facts.rows() else { return };
    let (alive, silent): (Vec<_>, Vec<_>) =
        rows.processes.iter().partition(|process| process.silent_ms <= MAX_HEARTBEAT_AGE_MS);
    if !silent.is_empty() {
        let names = silent.iter().map(|process| {
            let (name, kind, since) = (&process.name, &process.kind, duration(process.silent_ms));
            match process.running {
                0 => format!("{kind} {name} for {since}"),
                open => format!("{kind} {name} for {since}, with {open} open attempts"),
            }
        });
        let long = |ms: i64, open: i64| ms > MARK_STOPPED_AFTER_MS && open == 0;
        let fixed = silent.iter().any(|process| long(process.silent_ms, process.running));
        let finding = Finding::new(Code::ProcessSilent, join_first(names));
        found.push(if fixed { finding } else { finding.without_fix() });
    }
    let idle: Vec<_> = alive.iter().filter(|process| !process.ready).collect();
    if !idle.is_empty() {
        let names = idle.iter().map(|process| format!("{} {}", process.kind, process.name));
        found.push(Finding::new(Code::ProcessNotReady, join_first(names)));
    }
    let others: Vec<_> = alive.iter().filter(|process| process.version != facts.version).collect();
    if !others.is_empty() {
        let names = others.iter().map(|process| format!("{} {}", process.name, process.version));
        let text = format!("this is {}; {}", facts.version, join_first(names));
        found.push(Finding::new(Code::VersionsDiffer, text));
    }
}
