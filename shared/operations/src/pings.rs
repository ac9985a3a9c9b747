//! Accepts the pings of foreign jobs.

use std::collections::HashSet;

use ring::digest::{SHA256, digest};
use sexton_store::checks::endpoint;
use sexton_store::checks::record::{self, HASH_BYTES};
use sexton_store::{Store, StoreError};

pub use sexton_store::checks::record::{Creation, NewPing, PingTarget};

/// Returns the hash by which a key is known.
pub fn key_hash(key: &str) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(digest(&SHA256, key.as_bytes()).as_ref());
    hash
}

/// Records pings, durably. Returns the places of those whose check there is.
///
/// # Errors
///
/// Those of the database; whether they were recorded may be unknown.
pub async fn record(store: &Store, pings: &[NewPing]) -> Result<HashSet<usize>, StoreError> {
    record::record(store, pings, None).await
}

/// Creates the check of a ping by key and name, within the key's limit.
///
/// # Errors
///
/// Those of the database.
pub async fn create(
    store: &Store,
    key: &[u8; HASH_BYTES],
    name: &str,
) -> Result<Creation, StoreError> {
    record::create(store, key, name, None).await
}

/// Says that this process accepts pings.
///
/// # Errors
///
/// Those of the database.
pub async fn beat(store: &Store) -> Result<(), StoreError> {
    endpoint::beat(store, None).await
}
