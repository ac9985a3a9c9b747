//! What the checker has found in the protocol and the code does not hold off yet.

use crate::fences::Fences;
use crate::properties::Property;
use crate::protocol::Protocol;
use crate::scenarios::SMALL;
use crate::words::tell;

/// When this fails, the code has got the fence: make `Fences::TODAY` all of them, and remove what
/// `docs/proof.md` says of it.
#[test]
fn an_execution_that_failed_unopened_can_be_opened_by_a_ticket_left_over_without_end() {
    let catalogues = SMALL.iter().find(|protocol| protocol.bounds.name == "catalogues").unwrap();
    let bounds = crate::protocol::Bounds { faults: 0, ..catalogues.bounds };
    let today = Protocol { bounds, fences: Fences::TODAY };
    let found = today.check().expect_err("a counterexample");
    println!("{}\n  {}", found.property.sentence(), tell(&today, &found.history).join("\n  "));
    assert_eq!(found.property, Property::NoEndlessExchange);
}
