//! The items of a bulk, as its page shows them.

use std::iter::once;

use sexton_model::bulk_item::ItemState;
use sexton_model::state::State;
use sexton_operations::short_ids::ShortIds;
use sexton_store::bulk::{Bulk, ListedItem, VERIFY_BY_NOBODY};
use uuid::Uuid;

/// An item.
#[derive(Debug)]
pub(super) struct ItemRow {
    pub(super) item: ListedItem,
    pub(super) short_id: String,
}

impl ItemRow {
    /// Makes the row of an item; `ids` has the short ids of executions.
    pub(super) fn new(item: ListedItem, ids: &ShortIds<Uuid>) -> Self {
        Self { short_id: ids.get(&item.execution_id), item }
    }

    fn state(&self) -> Option<State> {
        self.item.execution_state.as_deref().and_then(State::parse)
    }

    /// Returns the address of its failure, or else of its execution; `None`: retention has removed it.
    pub(super) fn path(&self) -> Option<String> {
        self.item.execution_state.as_ref()?;
        let part = match self.state() {
            Some(State::Failed | State::Discarded) => "failed",
            _ => "executions",
        };
        Some(format!("/{part}/{}", self.item.execution_id))
    }

    /// Returns the state of its execution at present.
    pub(super) fn state_now(&self) -> &str {
        let is_done = self.item.state == ItemState::Done.as_str();
        let has_run_since = self.item.execution_attempt.is_some_and(|now| now > self.item.seen);
        match self.item.execution_state.as_deref() {
            Some(_) if is_done && has_run_since && self.state() == Some(State::Failed) => {
                "failed again"
            }
            Some(state) => state,
            None => "removed by retention",
        }
    }
}

/// A link to the items in a state, or to all.
#[derive(Debug)]
pub(super) struct Tab {
    pub(super) label: &'static str,
    pub(super) path: String,
    pub(super) is_current: bool,
}

const fn label(state: ItemState) -> &'static str {
    match state {
        ItemState::Unasked => "Unasked",
        ItemState::Waiting => "Waiting",
        ItemState::Done => "Done",
        ItemState::Refused => "Refused",
        ItemState::Resolved => "Resolved",
        ItemState::Left => "Left",
    }
}

/// Returns the links to the states that items of this bulk can be in now, and to the `current` one.
pub(super) fn tabs(bulk: &Bulk, current: Option<ItemState>) -> Vec<Tab> {
    let path = format!("/bulks/{}", bulk.id);
    let can_be_in = |state: &ItemState| match state {
        ItemState::Unasked => {
            let asks = |by: &str| by != VERIFY_BY_NOBODY;
            bulk.remaining() > 0 && bulk.verify.as_deref().is_some_and(asks)
        }
        ItemState::Waiting => bulk.remaining() > 0,
        ItemState::Done => bulk.done > 0,
        ItemState::Refused => bulk.refused > 0,
        ItemState::Resolved => bulk.resolved > 0,
        ItemState::Left => bulk.left_alone > 0,
    };
    let all = Tab { label: "All", path: path.clone(), is_current: current.is_none() };
    let states = ItemState::ALL.into_iter();
    let states = states.filter(|state| can_be_in(state) || current == Some(*state));
    let of_states = states.map(|state| Tab {
        label: label(state),
        path: format!("{path}?state={}", state.as_str()),
        is_current: current == Some(state),
    });
    once(all).chain(of_states).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: &str, now: Option<(&str, i32)>) -> ItemRow {
        let item = ListedItem {
            ordinal: 1,
            execution_id: Uuid::from_u128(7),
            seen: 2,
            state: state.to_owned(),
            note: None,
            acted_at: None,
            job_name: now.map(|_| "shop.charge".to_owned()),
            execution_state: now.map(|(state, _)| state.to_owned()),
            execution_attempt: now.map(|(_, attempt)| attempt),
        };
        ItemRow { item, short_id: "0".to_owned() }
    }

    #[test]
    fn a_row_says_what_has_become_of_its_execution_and_leads_to_it() {
        let id = Uuid::from_u128(7);
        let (failed, execution) = (format!("/failed/{id}"), format!("/executions/{id}"));
        for (state, now, words, path) in [
            ("done", Some(("succeeded", 2)), "succeeded", Some(&execution)),
            ("done", Some(("pending", 2)), "pending", Some(&execution)),
            ("done", Some(("failed", 3)), "failed again", Some(&failed)),
            ("done", Some(("failed", 2)), "failed", Some(&failed)),
            ("refused", Some(("failed", 3)), "failed", Some(&failed)),
            ("refused", Some(("discarded", 2)), "discarded", Some(&failed)),
            ("refused", None, "removed by retention", None),
        ] {
            let row = row(state, now);
            assert_eq!((row.state_now(), row.path().as_ref()), (words, path), "{state} {now:?}");
        }
    }
}
