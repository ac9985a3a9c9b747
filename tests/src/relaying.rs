//! One round of the relay's statements, without the relay.

use sexton_model::flow_control::shares;
use sexton_store::relay::{RelayBatch, find_destinations, take_batch};
use sexton_store::{Now, Store, StoreError};

/// The most destinations in one round: more than any test has.
const DESTINATIONS: usize = 1_000;

/// Takes up to `limit` due tickets, whatever their destination.
pub async fn take_due(store: &Store, limit: usize, now: Now) -> Result<RelayBatch, StoreError> {
    let due = find_destinations(store, None, DESTINATIONS, now).await?.due;
    let quotas = shares(limit, &vec![limit; due.len()]);
    take_batch(store, &due.into_iter().zip(quotas).collect::<Vec<_>>(), now).await
}
