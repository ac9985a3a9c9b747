//! `H`: a number that depends on the job's name, so that jobs that need no particular minute do not
//! all begin in the same one.
//!
//! # Guarantees
//!
//! The same name and field give the same number in every release and on every machine: a job that
//! moved would skip or repeat work. A test holds the numbers. Each field has a number of its own,
//! so that `H H * * *` spreads over the whole day.

use super::error::Field;

/// FNV-1a's starting value and factor, 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// A number below `size` (at least 1) for the job called `name`, each about equally likely.
pub(super) fn below(size: u8, name: &str, field: Field) -> u8 {
    // No name and no label holds the byte in between, so no two pairs are one text.
    let label = field.label().as_bytes();
    let bytes = name.as_bytes().iter().chain(&[0xff]).chain(label);
    let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    // The high bits of the product choose, since they depend on all bits of the hash.
    ((u128::from(mixed(hash)) * u128::from(size)) >> 64) as u8
}

/// Lets every bit of FNV's result, whose high bits hardly know the last bytes, reach every other
/// (the last steps of `splitmix64`).
fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
