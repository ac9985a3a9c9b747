//! The UUID that Spring Integration makes of a lock's name.

use uuid::{Builder, Uuid};

use crate::lock_key::hash::md5;

/// The longest text that Java's `UUID.fromString` reads, in bytes.
const MAX_UUID_BYTES: usize = 36;

/// Returns the UUID that the name is, and otherwise one of version 3 without a namespace: Java's
/// `UUID.nameUUIDFromBytes`.
pub(super) fn of(name: &str) -> Uuid {
    parsed_by_java(name).unwrap_or_else(|| Builder::from_md5_bytes(md5(name)).into_uuid())
}

/// Reads a UUID as `UUID.fromString` does: of five hexadecimal numbers of any length it takes the last digits.
fn parsed_by_java(text: &str) -> Option<Uuid> {
    if text.len() > MAX_UUID_BYTES {
        return None;
    }
    let mut parts = text.split('-').map(|part| {
        let is_hex = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        i64::from_str_radix(part, 16).ok().filter(|_| is_hex).map(|number| number as u64)
    });
    let mut next = |bits: u32| Some(parts.next()?? & ((1_u64 << bits) - 1));
    let high = next(32)? << 32 | next(16)? << 16 | next(16)?;
    let low = next(16)? << 48 | next(48)?;
    if parts.next().is_some() { None } else { Some(Uuid::from_u64_pair(high, low)) }
}
