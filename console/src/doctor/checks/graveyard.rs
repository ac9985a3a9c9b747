//! The failed queue beside the failed rows.

use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};

pub(in crate::doctor) fn look(facts: &Facts, found: &mut Vec<Finding>) {
    let (Ok(broker), Some(rows)) = (&facts.broker, facts.rows()) else { return };
    let Some(ready) = broker.examined.failed_ready.map(i64::from) else { return };
    let (rows, raw) = (rows.failed.published as i64, rows.raw);
    let counts = format!("{ready} messages, {rows} failed rows with a message, {raw} raw messages");
    if raw > 0 {
        found.push(Finding::new(Code::MessagesWithoutRows, &counts));
    }
    if ready < rows + raw {
        // What of them is there is known only when nothing is.
        let finding = Finding::new(Code::FailedWithoutMessages, &counts);
        if rows > 0 {
            found.push(if ready == 0 { finding } else { finding.by_hand() });
        }
    }
    if ready > rows + raw {
        found.push(Finding::new(Code::MessagesUncounted, &counts));
    }
}
