//! A missing consequence: an error that is a violation, not a failed try.

use std::fmt;

use anyhow::{Error, Result};

use super::Outcome;
use crate::torture::oracle::Violation;

#[derive(Debug)]
struct Breach(Violation);

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Breach {}

/// Fails with a violation unless the consequence has followed.
pub(super) fn follows(done: bool, otherwise: &str) -> Result<()> {
    if done { Ok(()) } else { Err(undone(otherwise.to_owned())) }
}

/// The violation that something did not follow.
pub(super) fn undone(what: String) -> Error {
    Breach(Violation::Undone { what }).into()
}

/// The violation that a program ended without a strike.
pub(super) fn crashed(what: String) -> Error {
    Breach(Violation::Crashed { what }).into()
}

/// The result of a strike that ended with this error.
pub(super) fn into_outcome(error: Error) -> Result<Outcome> {
    error.downcast::<Breach>().map(|breach| Outcome::Broken(breach.0))
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    #[test]
    fn a_missing_effect_is_a_violation_and_a_failed_try_is_not() {
        assert!(follows(true, "x").is_ok());
        let undone = follows(false, "the message stays").context("on the way up").unwrap_err();
        let Outcome::Broken(violation) = into_outcome(undone).unwrap() else {
            panic!("not broken")
        };
        assert_eq!(violation.to_string(), "did not follow: the message stays");
        let Outcome::Broken(violation) = into_outcome(crashed("w1".to_owned())).unwrap() else {
            panic!("not broken")
        };
        assert_eq!(violation, Violation::Crashed { what: "w1".to_owned() });
        assert!(into_outcome(anyhow!("nothing was there")).is_err());
    }
}
