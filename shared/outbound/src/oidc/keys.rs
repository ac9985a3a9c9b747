//! The keys with which a provider signs (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sexton_model::oidc::Claims;

use super::signature::{Algorithm, PublicKey, SignedToken};

/// The most keys of a provider.
const MAX_KEYS: usize = 100;
/// Bytes of a coordinate of P-256.
const COORDINATE_BYTES: usize = 32;

/// The keys of a provider that can sign a token here.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    public: PublicKey,
}

/// Why no key has signed a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum KeyProblem {
    /// The provider may have a new one.
    #[error("it is signed with a key that the provider does not publish; try again in a minute")]
    Unknown,
    /// The signature is of another text, or of another key; the provider may have renewed one under its old name.
    #[error("its signature is wrong")]
    Wrong,
}

impl Keys {
    /// Reads a set. Keys for other uses, and those of other algorithms, are left out.
    pub(super) fn parse(document: &Value) -> Result<Self, String> {
        let keys = document.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or("its keys are no list")?;
        if keys.len() > MAX_KEYS {
            return Err(format!("it has more than {MAX_KEYS} keys"));
        }
        Ok(Self(keys.iter().filter_map(parse_key).collect()))
    }

    /// Returns the claims of a token that one of these keys signed: one with the id that it names, and without an id any for its algorithm.
    pub(super) fn verify(&self, token: &SignedToken<'_>) -> Result<Claims, KeyProblem> {
        let fits = |key: &&Key| {
            key.public.algorithm() == token.algorithm
                && token.key_id.as_ref().is_none_or(|id| key.id.as_ref() == Some(id))
        };
        let mut fitting = self.0.iter().filter(fits).peekable();
        if fitting.peek().is_none() {
            return Err(KeyProblem::Unknown);
        }
        // While a provider renews a key it may have two of one id, or two without any.
        if fitting.any(|key| token.is_signed_by(&key.public)) {
            Ok(Claims::new(token.claims()))
        } else {
            Err(KeyProblem::Wrong)
        }
    }
}

fn parse_key(key: &Value) -> Option<Key> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let public = match (text("kty")?, text("crv")) {
        ("RSA", _) => PublicKey::Rsa { n: bytes("n")?, e: bytes("e")? },
        ("EC", Some("P-256")) => {
            let (x, y) = (bytes("x")?, bytes("y")?);
            if x.len() != COORDINATE_BYTES || y.len() != COORDINATE_BYTES {
                return None;
            }
            PublicKey::P256([&[4][..], &x, &y].concat())
        }
        _ => return None,
    };
    let algorithm = text("alg").map(Algorithm::parse);
    let is_for_it = algorithm.is_none_or(|algorithm| algorithm == Some(public.algorithm()));
    is_for_it.then(|| Key { id: text("kid").map(str::to_owned), public })
}
