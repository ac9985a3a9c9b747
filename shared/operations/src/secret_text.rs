//! Random secrets as text, and the hashes by which the database knows them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use sexton_store::tokens::HASH_BYTES;

use crate::error::OperationError;

/// Returns random bytes of the system.
pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES], OperationError> {
    let mut bytes = [0; BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| OperationError::Failed("the system gave no random bytes".to_owned()))?;
    Ok(bytes)
}

/// Returns random bytes as letters, digits, hyphens and underscores.
///
/// # Errors
///
/// The system gives none.
pub fn random_text<const BYTES: usize>() -> Result<String, OperationError> {
    Ok(URL_SAFE_NO_PAD.encode(random::<BYTES>()?))
}

/// SHA-256, which suffices for a text of 256 random bits.
pub(crate) fn hash(secret: &str) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    hash
}
