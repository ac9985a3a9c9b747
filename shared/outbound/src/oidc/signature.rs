//! A signed token in its three parts (RFC 7515, compact), and the two algorithms that count.
//!
//! What a token says about its algorithm chooses among these two; `none`, and those with a shared secret, are no algorithm here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};

/// Largest token, in bytes.
const MAX_TOKEN_BYTES: usize = 64 * 1024;

/// How a token is signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Algorithm {
    /// RSA with SHA-256, by keys of 2048 bits or more.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
}

impl Algorithm {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

/// A token whose signature nobody has checked yet.
#[derive(Debug)]
pub(super) struct SignedToken<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    message: &'a str,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

/// A key of a provider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PublicKey {
    /// Modulus and exponent.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// An uncompressed point of P-256.
    P256(Vec<u8>),
}

impl PublicKey {
    pub(super) const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
        }
    }
}

impl<'a> SignedToken<'a> {
    /// Reads a token.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let parsed = Self::parse_parts(text);
        let (header, message, signature, claims) =
            parsed.ok_or("it is no signed token, or longer than 64 KiB")?;
        let name = header.get("alg").and_then(Value::as_str).unwrap_or("none");
        let algorithm = Algorithm::parse(name).ok_or_else(|| {
            let name = super::answer::error_word(name);
            format!("it is signed with {name:?}; let the provider sign with RS256 or ES256")
        })?;
        // What must be understood (RFC 7515, 4.1.11), and is not.
        if header.contains_key("crit") {
            return Err("it has extensions that must be understood (crit)".to_owned());
        }
        let key_id = header.get("kid").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { algorithm, key_id, message, signature, claims })
    }

    #[expect(clippy::type_complexity, reason = "the parts, once")]
    fn parse_parts(
        text: &'a str,
    ) -> Option<(Map<String, Value>, &'a str, Vec<u8>, Map<String, Value>)> {
        if text.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let object = |part: &str| serde_json::from_slice(&decode(part)?).ok();
        Some((object(header)?, message, decode(signature)?, object(claims)?))
    }

    /// Returns whether this key signed the token.
    pub(super) fn is_signed_by(&self, key: &PublicKey) -> bool {
        let message = self.message.as_bytes();
        match key {
            _ if key.algorithm() != self.algorithm => false,
            PublicKey::Rsa { n, e } => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, &self.signature)
                .is_ok(),
            PublicKey::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(message, &self.signature)
                .is_ok(),
        }
    }

    /// Returns the claims. Only for a token whose signature is right.
    pub(super) fn claims(&self) -> Map<String, Value> {
        self.claims.clone()
    }
}
