//! Log-in by an OpenID provider: its settings, the check of an ID token's claims, and the role that they give.
//!
//! The signature is checked before, by who fetches the provider's keys.

mod claims;
mod roles;
mod token;

use std::fmt;

use sha2::{Digest as _, Sha256};
use url::{Host, Url};

pub use self::claims::{Claims, Values};
pub use self::roles::{MAX_ROLE_RULES, NoPerson, Person, RoleRule, RoleRules};
pub use self::token::{Expected, InvalidClaims, LEEWAY};

/// The longest name of a person, in bytes.
pub const MAX_PERSON_BYTES: usize = 200;

/// The most characters of a text of a token, or of the provider, that a refusal or a log repeats.
const MAX_SHOWN_CHARS: usize = 100;

/// A provider, and what people whom it vouches for may do.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// Its URL, exactly as it names itself.
    pub issuer: Issuer,
    /// By which it knows this platform.
    pub client_id: String,
    /// By which this platform proves that; `None`: a public client, which PKCE alone protects.
    pub client_secret: Option<ClientSecret>,
    /// What is requested of it, separated by spaces; `openid` among them.
    pub scopes: String,
    /// The claim that names a person in the audit.
    pub name_claim: String,
    /// Who gets which role.
    pub roles: RoleRules,
    /// Scheme, host and port at which browsers reach this platform.
    pub public_url: Url,
}

impl ProviderSettings {
    /// Returns a hash of all that decides who gets in, under which name and with which role. A session counts only under the settings by which
    /// it began.
    pub fn binding(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        };
        for text in [self.issuer.as_str(), &self.client_id, &self.name_claim] {
            add(text);
        }
        for (claim, value, role) in self.roles.sorted() {
            for text in [claim, value, role.as_str()] {
                add(text);
            }
        }
        digest.finalize().into()
    }
}

/// Shortens a text of somebody else to what a refusal or a log repeats.
pub fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The URL of a provider, of which each character counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issuer {
    text: String,
    url: Url,
}

impl Issuer {
    /// Parses it: `https`, or `http` to this machine, without user, query or fragment.
    ///
    /// # Errors
    ///
    /// What is wrong, for the person who writes the setting.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url = web_url(text)?;
        if url.query().is_some() {
            return Err("has a query, which no issuer has".to_owned());
        }
        Ok(Self { text: text.to_owned(), url })
    }

    /// Exactly as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host, for people.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns where it describes itself (OpenID Connect Discovery, 4.1); `None`: that is no URL.
    pub fn discovery_url(&self) -> Option<Url> {
        let base = self.text.trim_end_matches('/');
        Url::parse(&format!("{base}/.well-known/openid-configuration")).ok()
    }

    /// Parses the URL of one of its endpoints: as strict as for the issuer, and `http` only where the issuer has it, too.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn endpoint(&self, text: &str) -> Result<Url, String> {
        let url = web_url(text)?;
        if url.scheme() != self.url.scheme() && url.scheme() == "http" {
            return Err("is not https".to_owned());
        }
        Ok(url)
    }

    /// Returns whether an endpoint is on the issuer's host, which the settings name, so that it may have a private address.
    pub fn has_host_of(&self, endpoint: &Url) -> bool {
        self.url.host() == endpoint.host()
    }
}

/// A secret that the provider gave this platform. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret(String);

impl ClientSecret {
    /// Takes the text.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns it. Pass it only to the provider.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(…)")
    }
}

/// Parses a URL that nobody on the way can change: `https`, or `http` to this machine.
///
/// # Errors
///
/// What is wrong, to be read after its name.
pub fn web_url(text: &str) -> Result<Url, String> {
    let url = crate::target_url::http_url(text)?;
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return Err("names no host".to_owned()),
    };
    if url.scheme() == "https" || is_here {
        return Ok(url);
    }
    Err("must begin with https://, unless it is on this machine".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_bound_to_issuer_client_name_and_rules_and_to_nothing_else() {
        let binding = |issuer: &str, client: &str, name: &str, roles: &str, secret: &str| {
            let settings = ProviderSettings {
                issuer: Issuer::parse(issuer).unwrap(),
                client_id: client.to_owned(),
                client_secret: Some(ClientSecret::new(secret.to_owned())),
                scopes: secret.to_owned(),
                name_claim: name.to_owned(),
                roles: RoleRules::parse(roles).unwrap(),
                public_url: Url::parse(&format!("https://{secret}.example.com")).unwrap(),
            };
            settings.binding()
        };
        let (id, rules) = ("https://id.example.com", "a:b=viewer,c:d=admin");
        let first = binding(id, "x", "email", rules, "one");
        assert_eq!(first, binding(id, "x", "email", rules, "two"));
        let same = "c:d=admin, a:b=viewer,a:b=viewer";
        assert_eq!(first, binding(id, "x", "email", same, "one"));
        for other in [
            binding("https://id.example.com/", "x", "email", rules, "one"),
            binding(id, "y", "email", rules, "one"),
            binding(id, "x", "sub", rules, "one"),
            binding(id, "xe", "mail", rules, "one"),
            binding(id, "x", "email", "a:b=viewer", "one"),
            binding(id, "x", "email", "a:b=operator,c:d=admin", "one"),
            binding(id, "x", "email", "a:b=viewer,cd:d=admin", "one"),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn an_issuer_is_encrypted_or_on_this_machine_and_keeps_its_text() {
        for text in [
            "https://id.example.com",
            "https://id.example.com/realms/ops/",
            "http://localhost:9000",
            "http://127.0.0.1:9000/x",
            "http://[::1]:9000",
        ] {
            assert_eq!(Issuer::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "id.example.com",
            "http://id.example.com",
            "http://localhost.example.com",
            "https://ann:x@id.example.com",
            "https://id.example.com/?a=b",
            "https://id.example.com/#a",
            "ftp://localhost",
        ] {
            assert!(Issuer::parse(text).is_err(), "{text}");
        }
        let issuer = Issuer::parse("https://id.example.com/realms/ops/").unwrap();
        let at = issuer.discovery_url().unwrap();
        assert_eq!(
            at.as_str(),
            "https://id.example.com/realms/ops/.well-known/openid-configuration"
        );
        assert!(issuer.endpoint("http://localhost/keys").is_err());
        let keys = issuer.endpoint("https://keys.example.com/").unwrap();
        assert!(!issuer.has_host_of(&keys) && issuer.has_host_of(&at));
    }
}
