//! What a canary promises: nothing follows on the first that has not ended well.

use sexton_model::bulk::BulkState;
use sexton_model::state::State;

use super::super::invariants::invariant;
use super::super::rows::Row;
use super::super::stop::Stop;
use super::invariants::{BulkChecker, bulk_invariant};

/// Judged by the rows that the operation found.
pub(super) fn holds(look: &BulkChecker<'_>) -> Result<(), Stop> {
    let Some(size) = look.is.canary else { return Ok(()) };
    let out = look.was.items.values().filter(|item| item.state == "done");
    // What retention has removed had ended well.
    let out: Vec<&Row> = out.filter_map(|item| look.before.get(&item.execution)).collect();
    let is_bad = |state| matches!(state, State::Failed | State::Discarded | State::Cancelled);
    let bad = out.iter().find(|row| is_bad(row.state)).map(|row| row.name());
    let running = out.iter().any(|row| row.state.is_under_way());
    let more = look.is.count("done") - look.was.count("done");
    if look.is.state == BulkState::Paused && look.was.state == BulkState::Running {
        bulk_invariant!(look, bad.is_some(), "its canary has not failed");
    }
    let held = !look.was.canary_passed;
    bulk_invariant!(look, !held || more == 0 || bad.is_none(), "it goes on though {bad:?}");
    let goes_on = look.was.state == BulkState::Paused || look.was.canary_passed;
    if look.is.canary_passed && !goes_on {
        bulk_invariant!(look, bad.is_none() && !running, "its canary passes too early: {bad:?}");
    } else if !look.is.canary_passed {
        let all = look.is.count("done");
        bulk_invariant!(look, all <= size, "{all} are done, and its canary has {size}");
    }
    Ok(())
}
