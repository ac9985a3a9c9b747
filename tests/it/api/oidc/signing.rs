//! The keys of a provider, and how it signs a token, rightly or not.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// Of these tests alone. Making one takes long.
const RSA_KEY: &[u8] = include_bytes!("rsa.pk8");

/// How tokens are signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signing {
    Rs256,
    Es256,
    /// With the one key of its algorithm, which the token does not name.
    WithoutKeyId,
    /// Not at all.
    None,
    /// With the public key as a shared secret.
    Hs256,
    /// With a key that the provider does not publish but by [`Keys::publish_other`], under the id of one that it does.
    OtherKey,
    /// With one of its keys, under an id that it does not publish.
    UnknownKeyId,
    /// With one of its keys, under the id of another.
    WrongKeyId,
    /// With one of its keys, but other claims.
    Altered,
    /// By an algorithm of a longer hash.
    Rs512,
    /// With an extension that must be understood.
    Critical,
}

/// The keys of a provider.
pub(super) struct Keys {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    other: EcdsaKeyPair,
    /// The id of the key for ECDSA.
    ec_id: String,
    publishes_other: bool,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn ec_key() -> EcdsaKeyPair {
    let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap()
}

impl Keys {
    pub(super) fn new() -> Self {
        let rsa = RsaKeyPair::from_pkcs8(RSA_KEY).unwrap();
        Self { rsa, ec: ec_key(), other: ec_key(), ec_id: "ec".to_owned(), publishes_other: false }
    }

    /// Replaces the key for ECDSA by a new one.
    pub(super) fn rotate(&mut self, id: &str) {
        (self.ec, self.ec_id) = (ec_key(), id.to_owned());
    }

    /// Publishes the other key under the id of the first, before it.
    pub(super) fn publish_other(&mut self) {
        self.publishes_other = true;
    }

    /// The keys as a provider publishes them, beside some that sign nothing here.
    pub(super) fn publish(&self) -> Value {
        let rsa = PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let (modulus, exponent) = (encode(&rsa.n), encode(&rsa.e));
        let ec = |key: &EcdsaKeyPair| {
            let point = key.public_key().as_ref();
            let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
            json!({"kty": "EC", "crv": "P-256", "kid": self.ec_id, "x": x, "y": y})
        };
        let first = if self.publishes_other { ec(&self.other) } else { json!({}) };
        json!({"keys": [
            first,
            {"kty": "RSA", "use": "enc", "kid": "enc", "n": modulus, "e": exponent},
            {"kty": "RSA", "use": "sig", "kid": "rsa", "alg": "RS256", "n": modulus, "e": exponent},
            {"kty": "RSA", "use": "sig", "kid": "pss", "alg": "PS256", "n": modulus, "e": exponent},
            ec(&self.ec),
            {"kty": "EC", "crv": "P-384", "kid": "long", "x": "AA", "y": "AA"},
            {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        ]})
    }

    pub(super) fn sign(&self, claims: &Value, signing: Signing) -> String {
        let (algorithm, key) = match signing {
            Signing::Rs256 | Signing::Altered | Signing::Critical => ("RS256", "rsa"),
            Signing::Es256 | Signing::OtherKey | Signing::WithoutKeyId => ("ES256", &*self.ec_id),
            Signing::UnknownKeyId => ("ES256", "gone"),
            Signing::WrongKeyId => ("ES256", "rsa"),
            Signing::None => ("none", "rsa"),
            Signing::Hs256 => ("HS256", "rsa"),
            Signing::Rs512 => ("RS512", "rsa"),
        };
        let mut header = json!({"alg": algorithm, "typ": "JWT"});
        if signing != Signing::WithoutKeyId {
            header["kid"] = key.into();
        }
        if signing == Signing::Critical {
            header["crit"] = json!(["exp"]);
        }
        let message = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = match signing {
            Signing::Rs256 | Signing::Rs512 | Signing::Critical => self.sign_rsa(&message),
            Signing::Altered => self.sign_rsa(&format!("{message}x")),
            Signing::OtherKey => sign_ec(&self.other, &message),
            Signing::Es256
            | Signing::WithoutKeyId
            | Signing::UnknownKeyId
            | Signing::WrongKeyId => sign_ec(&self.ec, &message),
            Signing::None => Vec::new(),
            Signing::Hs256 => {
                let rsa = PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
                let key = hmac::Key::new(hmac::HMAC_SHA256, &rsa.n);
                hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
            }
        };
        format!("{message}.{}", encode(signature))
    }

    fn sign_rsa(&self, message: &str) -> Vec<u8> {
        let mut signature = vec![0; self.rsa.public().modulus_len()];
        let signed = self.rsa.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            message.as_bytes(),
            &mut signature,
        );
        signed.unwrap();
        signature
    }
}

fn sign_ec(key: &EcdsaKeyPair, message: &str) -> Vec<u8> {
    key.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec()
}
