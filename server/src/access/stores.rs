//! The connections of the API: how many a server opens for what.

use std::time::Duration;

use sexton_store::{Store, StoreError, StoreOptions};

/// Time limit for a statement of a request that changes nothing: people look for something else after two seconds.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(2);
const CALLER_CONNECTIONS: u32 = 2;
const READ_CONNECTIONS: u32 = 6;
/// More than the approvals and triggers that go on without their clients can hold: `turns.rs` asserts it.
pub(super) const WRITE_CONNECTIONS: u32 = 7;

/// Connections to one database, apart from each other, so that slow searches hold up no action, and neither holds up the look-up of
/// callers. The first two end slow statements early.
#[derive(Clone, Debug)]
pub struct Stores {
    /// For the look-up of callers.
    pub callers: Store,
    /// For requests that change nothing.
    pub reads: Store,
    /// For the others.
    pub writes: Store,
}

impl Stores {
    /// Makes the three pools; their first uses open the connections. The pools have their own `pool_size` and `read_timeout`, not those of the options.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn open(options: &StoreOptions) -> Result<Self, StoreError> {
        let open = |pool_size, read_timeout| {
            Store::open(&StoreOptions { pool_size, read_timeout, ..options.clone() })
        };
        Ok(Self {
            callers: open(CALLER_CONNECTIONS, Some(READ_TIMEOUT))?,
            reads: open(READ_CONNECTIONS, Some(READ_TIMEOUT))?,
            writes: open(WRITE_CONNECTIONS, None)?,
        })
    }
}
