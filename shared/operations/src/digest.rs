//! SHA-256, of secrets that are not stored and of requests that are compared, and hexadecimal digits.

use std::fmt::Write as _;

use ring::digest::{Context, SHA256};

/// Length of a SHA-256, in bytes.
pub const SHA256_BYTES: usize = 32;

/// Returns the SHA-256 of these parts, one behind the other.
pub fn sha256(parts: &[&[u8]]) -> [u8; SHA256_BYTES] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; SHA256_BYTES];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(&[bytes]))
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
