//! Who may do what by the API: roles, and the tokens and accounts that give one.

use std::fmt;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// What the text of every token begins with, so that scanners of source code find one that was committed.
pub const TOKEN_PREFIX: &str = "sxt_";
/// Characters of a token's id: 64 random bits.
pub const TOKEN_ID_CHARS: usize = 16;
/// Characters of a token's secret: 256 random bits as base64 for URLs.
pub const TOKEN_SECRET_CHARS: usize = 43;
/// The most tokens that are neither revoked nor expired.
pub const MAX_TOKENS: u32 = 1_000;
/// The most accounts that are enabled.
pub const MAX_ACCOUNTS: u32 = 1_000;
/// The most sessions of an account, or of a person whom another system vouches for; one more ends the oldest.
pub const MAX_SESSIONS_PER_ACCOUNT: u32 = 20;
/// How long a session lasts at most.
pub const SESSION_LIFETIME: TimeDelta = TimeDelta::days(7);
/// How long one lasts of a person whom another system vouches for: nobody says when that system takes a role away.
pub const VOUCHED_SESSION_LIFETIME: TimeDelta = TimeDelta::hours(12);
/// How long a session may be unused.
pub const SESSION_IDLE: TimeDelta = TimeDelta::hours(12);
/// The fewest characters of a password.
pub const MIN_PASSWORD_CHARS: usize = 12;
/// The most bytes of a password.
pub const MAX_PASSWORD_BYTES: usize = 256;

/// What a person or program may do. Each role may do what the ones before it may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Role {
    /// Look at everything.
    Viewer,
    /// Act on what is there: trigger, requeue, pause, cancel, acknowledge; and enqueue.
    Operator,
    /// Change what is there: apply and delete jobs, edit params.
    Editor,
    /// Decide who may do what.
    Admin,
}

text_enum!(Role {
    Viewer => "viewer",
    Operator => "operator",
    Editor => "editor",
    Admin => "admin",
});

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Editor, Self::Admin];
}

/// How an actor is authenticated that does not use the command line. The audit writes its word before the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActorKind {
    /// By an account.
    Account,
    /// By a token.
    Token,
    /// By a proxy that names people.
    Proxy,
    /// By an identity provider.
    Oidc,
}

text_enum!(ActorKind {
    Account => "account",
    Token => "token",
    Proxy => "proxy",
    Oidc => "oidc",
});

impl ActorKind {
    /// Returns the name in the audit, as in `account ann`.
    pub fn actor(self, name: &str) -> String {
        format!("{} {name}", self.as_str())
    }

    /// Splits a name in the audit into the kind and the rest; one of the command line, such as `ann@host`, has no kind.
    pub fn split(actor: &str) -> (Option<Self>, &str) {
        let parts = actor.split_once(' ');
        let known = parts.and_then(|(word, name)| Some((Self::parse(word)?, name)));
        known.map_or((None, actor), |(kind, name)| (Some(kind), name))
    }
}

/// The text of a token, in its two parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenText<'a> {
    /// By which its row is found. It is no secret.
    pub id: &'a str,
    /// Of which the row has the hash.
    pub secret: &'a str,
}

impl fmt::Debug for TokenText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenText").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<'a> TokenText<'a> {
    /// Parses `sxt_<id>_<secret>`; `None`: it has another shape.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(TOKEN_PREFIX)?.split_at_checked(TOKEN_ID_CHARS)?;
        let secret = secret.strip_prefix('_')?;
        let is_id = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_secret = secret.len() == TOKEN_SECRET_CHARS
            && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        (is_id && is_secret).then_some(Self { id, secret })
    }
}

/// Returns whether `name` may name a token or an account: a lower-case letter or digit, and up to 62 of these, dots, hyphens and underscores.
pub fn is_token_name(name: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    (1..=63).contains(&name.len())
        && name.bytes().all(fits)
        && name.as_bytes()[0].is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_do_what_the_ones_before_it_may() {
        assert!(Role::ALL.is_sorted());
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert!(Role::Admin > Role::Editor && Role::Editor > Role::Operator);
    }

    #[test]
    fn a_token_is_parsed_and_nothing_that_only_looks_like_one() {
        let secret = "aZ09-_".repeat(8)[..TOKEN_SECRET_CHARS].to_owned();
        let id = "0123456789abcdef";
        let text = format!("sxt_{id}_{secret}");
        assert_eq!(TokenText::parse(&text), Some(TokenText { id, secret: &secret }));
        assert!(!format!("{:?}", TokenText::parse(&text)).contains(&secret));
        let wrong = [
            String::new(),
            "sxt_".to_owned(),
            format!("sxp_{id}_{secret}"),
            format!("sxt_{id}{secret}"),
            format!("sxt_{id}_{secret}A"),
            format!("sxt_{id}_{}", &secret[1..]),
            format!("sxt_{}_{secret}", &id[1..]),
            format!("sxt_{}_{secret}", id.to_uppercase()),
            format!("sxt_{id}_{}", secret.replace('a', "ä")),
            format!("sxt_{}é_{secret}", &id[1..]),
            format!("sxt_{id}_{}", secret.replace('a', "\0")),
        ];
        for text in wrong {
            assert_eq!(TokenText::parse(&text), None, "{text:?}");
        }
    }

    #[test]
    fn a_token_s_name_can_be_typed() {
        for (name, fits) in [
            ("deploy", true),
            ("ci.main-2_x", true),
            ("7", true),
            ("", false),
            ("Deploy", false),
            ("-x", false),
            ("a b", false),
            (&"a".repeat(63), true),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(is_token_name(name), fits, "{name}");
        }
    }
}
