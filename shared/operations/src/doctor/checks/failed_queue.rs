//! Compares the failed queue with the failed rows.

use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let (Ok(broker), Some(rows)) = (&facts.broker, facts.rows()) else { return };
    let Some(ready) = broker.examined.failed_ready.map(i64::from) else { return };
    let (rows, unknown) = (rows.failed.published as i64, rows.unknown_messages);
    let counts =
        format!("{ready} messages, {rows} failed rows with a message, {unknown} unknown messages");
    if unknown > 0 {
        found.push(Finding::new(Code::MessagesWithoutRows, &counts));
    }
    if ready < rows + unknown {
        // Which messages are missing is known only if the queue is empty.
        let finding = Finding::new(Code::FailedWithoutMessages, &counts);
        if rows > 0 {
            found.push(if ready == 0 { finding } else { finding.without_fix() });
        }
    }
    if ready > rows + unknown {
        found.push(Finding::new(Code::MessagesUncounted, &counts));
    }
}
