//! One round of the relay's statements, without the relay.

use sexton_model::flow_control::shares;
use sexton_store::relay::{Taken, destinations, take};
use sexton_store::{Now, Store, StoreError};

/// Destinations that are looked at: more than any test has.
const DESTINATIONS: usize = 1_000;

/// Takes up to `limit` tickets that are due, whatever their destination.
pub async fn take_due(store: &Store, limit: usize, now: Now) -> Result<Taken, StoreError> {
    let due = destinations(store, None, DESTINATIONS, now).await?.due;
    let quotas = shares(limit, &vec![limit; due.len()]);
    take(store, &due.into_iter().zip(quotas).collect::<Vec<_>>(), now).await
}
