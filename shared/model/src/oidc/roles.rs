//! Who a person is here, and with which role.

use std::fmt::Write as _;

use super::{Claims, MAX_PERSON_BYTES, Values, shortened};
use crate::access::Role;

/// The most rules.
pub const MAX_ROLE_RULES: usize = 200;
/// The most claims, and texts of each, that a refusal repeats.
const MAX_SHOWN: usize = 10;

/// Gives a role to people with a text in a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleRule {
    /// The claim, by name or path.
    pub claim: String,
    /// The text, exactly.
    pub value: String,
    /// The role.
    pub role: Role,
}

/// Who gets which role. A person with several has the highest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RoleRules(Vec<RoleRule>);

/// A person whom the provider has logged in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Person {
    /// The name in the audit.
    pub name: String,
    /// By which the provider knows the person, whatever the name is.
    pub subject: String,
    /// What the person may do.
    pub role: Role,
}

/// Why nobody gets in by a token that is right. The texts are for the person.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoPerson {
    /// No name.
    #[error(
        "the identity provider says nothing in the claim {0:?}, which is your name here; let it add the claim, or set \
         SERVE_OIDC_NAME_CLAIM to one that it has, and SERVE_OIDC_SCOPES to what brings it"
    )]
    NoName(String),
    /// A name that anybody could have entered.
    #[error(
        "the identity provider has not verified your address of mail (email_verified), so it proves nothing; verify it there, or \
         let an admin set SERVE_OIDC_NAME_CLAIM to another claim"
    )]
    Unverified,
    /// A name that fits nowhere.
    #[error(
        "your name in the claim {0:?} is longer than {MAX_PERSON_BYTES} bytes, or has control characters"
    )]
    Unfit(String),
    /// No role.
    #[error(
        "{name} is known to the identity provider, but has no role here; SERVE_OIDC_ROLES gives one by {by}. Let an admin add a \
         value that you have, or give you one of theirs at the provider"
    )]
    NoRole {
        /// The person's name.
        name: String,
        /// The claims, and what the token has in them.
        by: String,
    },
}

impl NoPerson {
    /// A word for it in logs, which have nothing else of a token.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoName(_) => "no_name",
            Self::Unverified => "unverified",
            Self::Unfit(_) => "unfit_name",
            Self::NoRole { .. } => "no_role",
        }
    }
}

impl RoleRules {
    /// Parses `CLAIM:VALUE=ROLE`, separated by commas. The claim ends at the first colon that begins no `://`.
    ///
    /// # Errors
    ///
    /// What is wrong with which entry.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rules: Vec<RoleRule> = text.split(',').map(parse_rule).collect::<Result<_, _>>()?;
        if rules.len() > MAX_ROLE_RULES {
            return Err(format!("{} entries are too many", rules.len()));
        }
        Ok(Self(rules))
    }

    /// The rules in an order of their own, each once: two settings with the same ones mean the same.
    pub(super) fn sorted(&self) -> Vec<(&str, &str, Role)> {
        let rules = self.0.iter();
        let mut rules: Vec<_> =
            rules.map(|rule| (rule.claim.as_str(), rule.value.as_str(), rule.role)).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// Returns who a person is, by a token that was checked.
    ///
    /// # Errors
    ///
    /// [`NoPerson`].
    pub fn person(&self, claims: &Claims, name_claim: &str) -> Result<Person, NoPerson> {
        let name = match claims.values(name_claim) {
            Values::Found(names) => names[0].trim().to_owned(),
            Values::Unverified => return Err(NoPerson::Unverified),
            Values::Missing => String::new(),
        };
        if name.is_empty() {
            return Err(NoPerson::NoName(name_claim.to_owned()));
        }
        if name.len() > MAX_PERSON_BYTES || name.chars().any(char::is_control) {
            return Err(NoPerson::Unfit(name_claim.to_owned()));
        }
        let fits = |rule: &&RoleRule| match claims.values(&rule.claim) {
            Values::Found(found) => found.contains(&rule.value.as_str()),
            Values::Unverified | Values::Missing => false,
        };
        let Some(role) = self.0.iter().filter(fits).map(|rule| rule.role).max() else {
            return Err(NoPerson::NoRole { name, by: self.describe(claims) });
        };
        let subject = claims.text("sub").unwrap_or_default().to_owned();
        Ok(Person { name, subject, role })
    }

    /// Names the claims that give roles, and what a token has in them.
    fn describe(&self, claims: &Claims) -> String {
        let mut names: Vec<&str> = self.0.iter().map(|rule| rule.claim.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut text = String::new();
        let is_cut = names.len() > MAX_SHOWN;
        for (number, name) in names.iter().take(MAX_SHOWN).enumerate() {
            let has = match claims.values(name) {
                Values::Missing => "which your token does not have".to_owned(),
                Values::Unverified => "which is not verified".to_owned(),
                Values::Found(found) => {
                    let shown = found.iter().take(MAX_SHOWN);
                    let shown: Vec<_> =
                        shown.map(|value| format!("{:?}", shortened(value))).collect();
                    let more = if found.len() > MAX_SHOWN { ", …" } else { "" };
                    format!("in which your token has {}{more}", shown.join(", "))
                }
            };
            let separator = if number == 0 { "" } else { "; " };
            // Writing to a String cannot fail.
            let _ = write!(text, "{separator}the claim {name:?}, {has}");
        }
        if is_cut {
            text.push_str("; …");
        }
        text
    }
}

fn parse_rule(text: &str) -> Result<RoleRule, String> {
    let text = text.trim();
    let shape = || format!("{text:?} is not CLAIM:VALUE=ROLE");
    let (condition, role) = text.rsplit_once('=').ok_or_else(shape)?;
    let role = Role::parse(role.trim())
        .ok_or_else(|| format!("{text:?} ends with no role: viewer, operator, editor or admin"))?;
    let mut colons = condition.match_indices(':').map(|(at, _)| at);
    let at = colons.find(|at| !condition[*at..].starts_with("://")).ok_or_else(shape)?;
    let (claim, value) = (condition[..at].trim(), condition[at + 1..].trim());
    if claim.is_empty() || value.is_empty() {
        return Err(shape());
    }
    Ok(RoleRule { claim: claim.to_owned(), value: value.to_owned(), role })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: &serde_json::Value) -> Claims {
        Claims::new(value.as_object().unwrap().clone())
    }

    #[test]
    fn rules_are_parsed_and_claims_and_values_may_have_colons() {
        let rules = RoleRules::parse(
            "groups:ops=operator, realm_access.roles:a=b=admin,https://x.example/roles:urn:y=viewer",
        );
        let rules = rules.unwrap().0;
        let seen: Vec<_> = rules
            .iter()
            .map(|rule| (rule.claim.as_str(), rule.value.as_str(), rule.role))
            .collect();
        assert_eq!(
            seen,
            [
                ("groups", "ops", Role::Operator),
                ("realm_access.roles", "a=b", Role::Admin),
                ("https://x.example/roles", "urn:y", Role::Viewer),
            ]
        );
        for text in [
            "",
            "ops=admin",
            "groups:ops",
            "groups:=admin",
            ":ops=admin",
            "groups:ops=root",
            "groups:ops=admin,",
        ] {
            assert!(RoleRules::parse(text).is_err(), "{text}");
        }
        let many = vec!["groups:ops=viewer"; MAX_ROLE_RULES + 1].join(",");
        assert!(RoleRules::parse(&many).is_err());
    }

    #[test]
    fn a_person_has_the_highest_role_that_a_claim_gives() {
        let rules = RoleRules::parse(
            "groups:ops=operator,groups:admins=admin,email:ann@example.com=editor,hd:example.com=viewer",
        );
        let rules = rules.unwrap();
        let role = |value: serde_json::Value| {
            let mut all = json!({"sub": "17", "name": "Ann"});
            for (name, value) in value.as_object().unwrap() {
                all[name] = value.clone();
            }
            rules.person(&claims(&all), "name").map(|person| person.role).ok()
        };
        assert_eq!(role(json!({"groups": ["ops"]})), Some(Role::Operator));
        assert_eq!(
            role(json!({"groups": ["ops", "admins"], "hd": "example.com"})),
            Some(Role::Admin)
        );
        assert_eq!(role(json!({"hd": "example.com"})), Some(Role::Viewer));
        let email = json!({"email": "ann@example.com", "email_verified": true});
        assert_eq!(role(email), Some(Role::Editor));
        assert_eq!(role(json!({"email": "ann@example.com", "email_verified": false})), None);
        assert_eq!(role(json!({"email": "ann@example.com"})), None);
        for nobody in [json!({}), json!({"groups": ["Ops", "ops2"]}), json!({"groups": "op"})] {
            assert_eq!(role(nobody.clone()), None, "{nobody}");
        }
    }

    #[test]
    fn who_has_no_role_or_no_name_reads_what_was_missing() {
        let rules = RoleRules::parse("groups:ops=operator,hd:example.com=viewer").unwrap();
        let refusal = |value: serde_json::Value, name: &str| {
            rules.person(&claims(&value), name).unwrap_err().to_string()
        };
        let text =
            refusal(json!({"email": "a@b.c", "email_verified": true, "groups": ["x"]}), "email");
        assert!(text.contains("a@b.c is known"), "{text}");
        assert!(text.contains(r#""groups", in which your token has "x"; the claim "hd", which your token does not have"#), "{text}");
        let many: Vec<String> = (0..50).map(|_| "ä".repeat(500)).collect();
        let many = json!({"name": "Ann", "groups": many});
        let text = refusal(many.clone(), "name");
        assert_eq!(text.matches(&format!("\"{}…\"", "ä".repeat(100))).count(), 10, "{text}");
        let rules: Vec<String> = (0..50).map(|number| format!("claim{number}:a=viewer")).collect();
        let rules = RoleRules::parse(&rules.join(",")).unwrap();
        let text = rules.person(&claims(&many), "name").unwrap_err().to_string();
        assert_eq!(text.matches("your token does not have").count(), 10, "{text}");
        assert!(refusal(json!({"email": "a@b.c"}), "email").contains("not verified"));
        assert!(refusal(json!({}), "email").contains(r#"claim "email""#));
        assert!(refusal(json!({"name": "a\nb"}), "name").contains("control"));
        assert!(refusal(json!({"name": "a".repeat(201)}), "name").contains("longer"));
    }
}
