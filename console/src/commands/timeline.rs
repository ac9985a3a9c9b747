//! The events of an execution, for people.

use sexton_operations::ledger::timeline::Event;

use crate::show::{Cell, Table, precise};

/// An execution's events as a table.
pub(super) fn timeline_table(timeline: &[Event]) -> Table {
    let mut table = Table::new(&["AT", "WHAT", "ATTEMPT", "BY", ""]).single_line_rows();
    for event in timeline {
        table.row(vec![
            Cell::new(precise(event.at)),
            Cell::new(&event.event),
            event.attempt.map_or_else(|| Cell::new(""), |number| Cell::new(number.to_string())),
            Cell::new(event.by.as_deref().unwrap_or("")),
            Cell::new(event.detail.as_deref().unwrap_or("")),
        ]);
    }
    table
}
