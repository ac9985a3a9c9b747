//! Hashes that formulas of lock keys share.

use md5::Md5;
use sha2::{Digest as _, Sha256};

/// The polynomial of CRC-32 as gzip and zlib have it, its bits reversed.
const CRC32_POLYNOMIAL: u32 = 0xedb8_8320;

/// Returns the CRC-32 of zlib.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    // Bit by bit: a name has a few dozen bytes.
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ CRC32_POLYNOMIAL } else { crc >> 1 };
    !bytes
        .iter()
        .fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

/// Returns `31·h + unit` over the UTF-16 units, as Java's `String.hashCode` does.
pub(super) fn java_hash(name: &str) -> i32 {
    name.encode_utf16()
        .fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Returns `33·h xor unit` over the UTF-16 units, in 64 bits.
pub(super) fn djb2(name: &str) -> i64 {
    let hash =
        name.encode_utf16().fold(5381, |hash: u64, unit| hash.wrapping_mul(33) ^ u64::from(unit));
    hash as i64
}

/// Returns the SHA-256 of the parts, one behind the other.
pub(super) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().into()
}

/// Returns the MD5 of a text.
pub(super) fn md5(text: &str) -> [u8; 16] {
    Md5::digest(text.as_bytes()).into()
}

/// Returns the first eight bytes of a digest. It has them.
pub(super) fn first_eight<const N: usize>(digest: [u8; N]) -> [u8; 8] {
    std::array::from_fn(|index| digest[index])
}
