//! Whether an ID token is for this log-in, here and now (OpenID Connect Core, 3.1.3.7).

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::Claims;

/// How far the clocks of provider and database may differ.
pub const LEEWAY: TimeDelta = TimeDelta::seconds(60);

/// What a token has to say.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Who issued it.
    pub issuer: &'a str,
    /// For whom.
    pub client_id: &'a str,
    /// For which log-in of which browser.
    pub nonce: &'a str,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidClaims {
    /// Another provider issued it.
    #[error("it is of another issuer (iss)")]
    Issuer,
    /// It is for another application.
    #[error("it is for another client (aud)")]
    Audience,
    /// It is for several, and another application got it.
    #[error("it was issued to another client (azp)")]
    Party,
    /// It is too old.
    #[error("it has expired (exp); compare the clocks of the provider and the database")]
    Expired,
    /// It does not count yet.
    #[error(
        "it is of the future (iat or nbf); compare the clocks of the provider and the database"
    )]
    Early,
    /// It belongs to another log-in.
    #[error("it belongs to another log-in (nonce)")]
    Nonce,
    /// It names nobody.
    #[error("it names no subject (sub)")]
    Subject,
}

impl Claims {
    /// Checks that the token is what a log-in waits for.
    ///
    /// # Errors
    ///
    /// [`InvalidClaims`]: the first thing that is wrong.
    pub fn check(&self, expected: &Expected<'_>, now: DateTime<Utc>) -> Result<(), InvalidClaims> {
        if self.get("iss").and_then(Value::as_str) != Some(expected.issuer) {
            return Err(InvalidClaims::Issuer);
        }
        self.check_audience(expected.client_id)?;
        let expires = self.instant("exp").ok_or(InvalidClaims::Expired)?;
        if expires <= now - LEEWAY {
            return Err(InvalidClaims::Expired);
        }
        let issued = self.instant("iat").ok_or(InvalidClaims::Early)?;
        let begins = match self.get("nbf") {
            Some(_) => self.instant("nbf").ok_or(InvalidClaims::Early)?,
            None => issued,
        };
        if issued.max(begins) > now + LEEWAY {
            return Err(InvalidClaims::Early);
        }
        if self.text("nonce") != Some(expected.nonce) {
            return Err(InvalidClaims::Nonce);
        }
        match self.text("sub") {
            Some(subject) if !subject.is_empty() && subject.len() <= 255 => Ok(()),
            _ => Err(InvalidClaims::Subject),
        }
    }

    fn check_audience(&self, client_id: &str) -> Result<(), InvalidClaims> {
        let is_for_others = match self.get("aud") {
            Some(Value::String(one)) if one == client_id => false,
            Some(Value::Array(all)) if all.iter().any(|one| one == client_id) => all.len() > 1,
            _ => return Err(InvalidClaims::Audience),
        };
        match self.get("azp") {
            None if !is_for_others => Ok(()),
            Some(party) if party == client_id => Ok(()),
            _ => Err(InvalidClaims::Party),
        }
    }

    /// Seconds since 1970, perhaps with a fraction.
    fn instant(&self, name: &str) -> Option<DateTime<Utc>> {
        let seconds = self.get(name)?.as_f64()?;
        DateTime::from_timestamp_millis((seconds * 1_000.0) as i64)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn check(change: &Value) -> Result<(), InvalidClaims> {
        let mut claims = json!({
            "iss": "https://id.example.com", "aud": "sexton", "sub": "17", "nonce": "n", "iat": NOW, "exp": NOW + 300
        });
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let claims = Claims::new(claims.as_object().unwrap().clone());
        let expected =
            Expected { issuer: "https://id.example.com", client_id: "sexton", nonce: "n" };
        claims.check(&expected, DateTime::from_timestamp(NOW, 0).unwrap())
    }

    #[test]
    fn a_token_for_this_log_in_is_accepted() {
        for change in [
            json!({}),
            json!({"aud": ["sexton"]}),
            json!({"azp": "sexton"}),
            json!({"aud": ["sexton", "other"], "azp": "sexton"}),
            json!({"exp": NOW - 59}),
            json!({"iat": NOW + 60, "nbf": NOW + 60}),
            json!({"iat": NOW - 3_600, "exp": 1.8e9 + 0.5}),
            // The last second that a time can have.
            json!({"exp": 8_210_266_876_799_i64}),
        ] {
            assert_eq!(check(&change), Ok(()), "{change}");
        }
    }

    #[test]
    fn a_token_of_another_issuer_client_time_or_log_in_is_not() {
        use InvalidClaims::{Audience, Early, Expired, Issuer, Nonce, Party, Subject};
        for (change, problem) in [
            (json!({"iss": "https://id.example.com/"}), Issuer),
            (json!({"iss": null}), Issuer),
            (json!({"aud": "other"}), Audience),
            (json!({"aud": ["other"]}), Audience),
            (json!({"aud": []}), Audience),
            (json!({"aud": {"sexton": true}}), Audience),
            (json!({"aud": ["sexton", "other"]}), Party),
            (json!({"azp": "other"}), Party),
            (json!({"azp": null}), Party),
            (json!({"exp": NOW - 60}), Expired),
            (json!({"exp": null}), Expired),
            (json!({"exp": "2100-01-01"}), Expired),
            (json!({"exp": f64::MAX}), Expired),
            (json!({"iat": NOW + 61}), Early),
            (json!({"iat": null}), Early),
            (json!({"nbf": NOW + 61}), Early),
            (json!({"nbf": "soon"}), Early),
            (json!({"nonce": "other"}), Nonce),
            (json!({"nonce": null}), Nonce),
            (json!({"sub": ""}), Subject),
            (json!({"sub": 17}), Subject),
            (json!({"sub": "x".repeat(256)}), Subject),
        ] {
            assert_eq!(check(&change), Err(problem), "{change}");
        }
    }
}
