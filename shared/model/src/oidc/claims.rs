//! The claims of an ID token.

use serde_json::{Map, Value};

/// What a provider says about a person, with its signature.
#[derive(Clone, PartialEq, Debug)]
pub struct Claims(Map<String, Value>);

/// The texts of a claim that counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Values<'a> {
    /// The token has no such claim, or no text in it.
    Missing,
    /// An address of mail that the provider has not verified: anybody can enter that of another person.
    Unverified,
    /// One text, or each of a list.
    Found(Vec<&'a str>),
}

impl Claims {
    /// Takes the claims of a token whose signature is right.
    pub const fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    /// Returns a claim by its name, or by a path with dots, as in `realm_access.roles`. A claim whose name has the dots comes first.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).or_else(|| {
            let mut parts = name.split('.');
            let first = self.0.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))
        })
    }

    /// Returns the text of a claim.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Returns the texts of a claim, as far as they count.
    pub fn values(&self, name: &str) -> Values<'_> {
        let found: Vec<&str> = match self.get(name) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => return Values::Missing,
        };
        if name == "email" && !self.is_email_verified() {
            return Values::Unverified;
        }
        if found.is_empty() { Values::Missing } else { Values::Found(found) }
    }

    /// Some providers write it as a text.
    fn is_email_verified(&self) -> bool {
        match self.get("email_verified") {
            Some(Value::Bool(is_verified)) => *is_verified,
            Some(Value::String(text)) => text == "true",
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: &Value) -> Claims {
        Claims::new(value.as_object().unwrap().clone())
    }

    #[test]
    fn a_claim_is_found_by_its_name_or_by_a_path() {
        let claims = claims(&json!({
            "groups": ["ops", 7, "admins"], "a.b": "dots", "a": {"b": "path"}, "realm_access": {"roles": ["x"]}, "none": [],
            "https://example.com/role": "url"
        }));
        assert_eq!(claims.values("groups"), Values::Found(vec!["ops", "admins"]));
        assert_eq!(claims.values("a.b"), Values::Found(vec!["dots"]));
        assert_eq!(claims.values("realm_access.roles"), Values::Found(vec!["x"]));
        assert_eq!(claims.values("https://example.com/role"), Values::Found(vec!["url"]));
        for name in ["", ".", "a", "a.c", "groups.0.x", "none", "realm_access"] {
            assert_eq!(claims.values(name), Values::Missing, "{name}");
        }
    }

    #[test]
    fn an_unverified_address_of_mail_counts_for_nothing() {
        let email = |verified: Value| {
            let claims = claims(&json!({"email": "ann@example.com", "email_verified": verified}));
            claims.values("email") == Values::Found(vec!["ann@example.com"])
        };
        assert!(email(json!(true)) && email(json!("true")));
        for verified in [json!(false), json!("false"), json!(null), json!(1), json!("")] {
            assert!(!email(verified.clone()), "{verified}");
        }
        let without = claims(&json!({"email": "ann@example.com"}));
        assert_eq!(without.values("email"), Values::Unverified);
    }
}
