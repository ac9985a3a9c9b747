//! Checks clocks, time zones, and clock jumps.

use sexton_model::zone::tz_data_version;

use super::{MAX_HEARTBEAT_AGE_MS, join_first};
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};
use crate::text::{duration, instant};

/// Synchronised clocks differ by less.
const MAX_CLOCK_OFFSET_MS: i64 = 1_000;

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Ok(database) = &facts.database else { return };
    let ahead = database.host_ahead_ms;
    if ahead.abs() > MAX_CLOCK_OFFSET_MS {
        let side = if ahead > 0 { "ahead of" } else { "behind" };
        let text = format!("this host is {} {side} the database", duration(ahead.abs()));
        found.push(Finding::new(Code::ClockOffset, text));
    }
    let Some(rows) = facts.rows() else { return };
    let newest = rows.newest_tz.as_deref().unwrap_or_default();
    let older: Vec<String> = rows
        .processes
        .iter()
        .filter(|process| process.silent_ms <= MAX_HEARTBEAT_AGE_MS)
        .filter_map(|process| Some((&process.name, process.tz_version.as_deref()?)))
        .filter(|(_, version)| *version < newest)
        .map(|(name, version)| format!("{name} has {version}"))
        .collect();
    if !older.is_empty() {
        let text = format!(
            "jobs were planned by {newest}, {}; this program has {}",
            join_first(older),
            tz_data_version()
        );
        found.push(Finding::new(Code::TimeZonesDiffer, text));
    }
    if let Some(hold) = &rows.hold {
        let text = format!(
            "since {}: {} firings of {} jobs are set aside",
            instant(hold.noticed_at),
            hold.firings,
            hold.jobs
        );
        found.push(Finding::new(Code::CatchUpHeld, text));
    }
}
