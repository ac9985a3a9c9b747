//! Numbers that depend on a name alone: they spread things in the same way on each replica.
//!
//! # Guarantees
//!
//! The same parts give the same number in every release and on every machine: a job that moved would skip or repeat
//! work. Tests hold the numbers where they are used.

/// FNV-1a's starting value and factor, 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Hashes two parts. Neither may contain the byte 0xff, unless the second always has one length: so no two pairs form
/// one text.
pub(crate) fn of(name: &str, label: &[u8]) -> u64 {
    let bytes = name.as_bytes().iter().chain(&[0xff]).chain(label);
    mixed(bytes.fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)))
}

/// Returns a number below `size` (at least 1), each about equally likely.
pub(crate) fn below(size: u64, hash: u64) -> u64 {
    // The high bits of the product choose, since they depend on all bits of the hash.
    ((u128::from(hash) * u128::from(size)) >> 64) as u64
}

/// Mixes all bits of FNV's result, whose high bits hardly depend on the last bytes (the last steps of `splitmix64`).
fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
