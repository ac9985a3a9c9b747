//! Instants in addresses.

use chrono::{DateTime, SecondsFormat, Utc};

/// Writes an instant as it is, such that an address may hold it without another encoding.
pub(in crate::pages) fn in_address(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
