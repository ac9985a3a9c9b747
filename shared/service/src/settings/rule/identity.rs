//! An OpenID provider: its URL, what is requested of it, and who gets which role.

use sexton_model::oidc::{Issuer, MAX_ROLE_RULES, RoleRules, web_url};
use url::Url;

use super::Rule;

/// The scope without which a provider issues no ID token.
const OPENID: &str = "openid";

/// [`Issuer`].
pub(crate) struct IssuerUrl;

impl Rule for IssuerUrl {
    type Value = Issuer;

    fn parse(&self, text: &str) -> Result<Issuer, String> {
        Issuer::parse(text)
    }

    fn allowed(&self) -> String {
        "https://HOST/PATH, exactly as the provider's discovery document has it in `issuer`; http:// on this machine alone"
            .to_owned()
    }
}

/// The address at which browsers reach the console, without a path.
pub(crate) struct PublicUrl;

impl Rule for PublicUrl {
    type Value = Url;

    fn parse(&self, text: &str) -> Result<Url, String> {
        let url = web_url(text)?;
        if url.path() != "/" || url.query().is_some() {
            return Err("has more than a host and a port".to_owned());
        }
        Ok(url)
    }

    fn allowed(&self) -> String {
        "https://HOST or https://HOST:PORT; http:// on this machine alone, like http://localhost:8420".to_owned()
    }
}

/// [`RoleRules`].
pub(crate) struct Roles;

impl Rule for Roles {
    type Value = RoleRules;

    fn parse(&self, text: &str) -> Result<RoleRules, String> {
        RoleRules::parse(text)
    }

    fn allowed(&self) -> String {
        format!(
            "1 to {MAX_ROLE_RULES} entries CLAIM:VALUE=ROLE separated by commas, like groups:ops=operator,groups:admins=admin"
        )
    }
}

/// What is requested of a provider.
pub(crate) struct Scopes {
    pub(crate) max_bytes: usize,
}

impl Rule for Scopes {
    type Value = String;

    fn parse(&self, text: &str) -> Result<String, String> {
        let is_scope = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        let scopes: Vec<&str> = text.split_ascii_whitespace().collect();
        if text.len() > self.max_bytes || !scopes.iter().all(|scope| scope.bytes().all(is_scope)) {
            return Err("not such a list".to_owned());
        }
        if !scopes.contains(&OPENID) {
            return Err(format!("without {OPENID} the provider sends no ID token"));
        }
        Ok(scopes.join(" "))
    }

    fn allowed(&self) -> String {
        format!("scopes separated by spaces, {OPENID} among them, at most {} bytes", self.max_bytes)
    }
}
