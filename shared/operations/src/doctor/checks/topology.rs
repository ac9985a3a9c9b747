//! Checks that the namespace's queues and exchange exist with the right arguments.

use super::join_first;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Ok(broker) = &facts.broker else { return };
    let examined = &broker.examined;
    if !examined.missing.is_empty() {
        let count = examined.missing.len();
        let text = format!("{count} do not exist: {}", join_first(&examined.missing));
        let finding = Finding::new(Code::TopologyMissing, text);
        // A declaration of all would stop at those that exist with other arguments.
        let in_the_way = !examined.mismatches.is_empty() || !examined.refused.is_empty();
        found.push(if in_the_way { finding.without_fix() } else { finding });
    }
    for mismatch in &examined.mismatches {
        found.push(Finding::new(Code::TopologyMismatch, mismatch.to_string()));
    }
}
