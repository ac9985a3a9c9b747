//! Verify tasks: a catalogue's task that checks whether the effect of a failed execution has happened.
//!
//! The question is an execution of its own, so that it survives the end of any program. Only its result is the
//! answer: an exit status of 1 may also come from a missing file or a broken script, and a success without a result
//! from a program that did nothing.

use serde_json::Value;

use crate::state::State;

/// Prefix of the jobs whose executions are questions, one for each verify task; reserved.
pub const VERIFY_PREFIX: &str = "verify.";

/// The answer to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VerifyAnswer {
    /// The effect has happened.
    Happened,
    /// It has not.
    NotYet,
    /// Neither, for this reason: the execution is left as it is.
    Unknown(String),
}

impl VerifyAnswer {
    /// Returns the value in the database.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Happened => "happened",
            Self::NotYet => "not_yet",
            Self::Unknown(_) => "none",
        }
    }
}

/// Returns the answer of a question in `state`, which returned `result` or failed with `error`; `None`: it has not
/// ended. The result is `true` or `false`, or an object whose `happened` is.
pub fn read_answer(
    state: State,
    result: Option<&Value>,
    error: Option<&str>,
) -> Option<VerifyAnswer> {
    let unknown = |text: String| Some(VerifyAnswer::Unknown(text));
    match state {
        State::Pending | State::Running | State::Retrying => None,
        State::Succeeded => Some(parse_result(result)),
        State::Failed | State::Discarded => {
            unknown(format!("its verify task failed: {}", error.unwrap_or("it failed")))
        }
        State::Cancelled => unknown("gave no answer: its question was cancelled".to_owned()),
        State::Skipped => unknown("gave no answer: its question was skipped".to_owned()),
    }
}

fn parse_result(result: Option<&Value>) -> VerifyAnswer {
    let Some(result) = result else {
        let text = "gave no answer: its result is to be true or false, and it handed back none";
        return VerifyAnswer::Unknown(text.to_owned());
    };
    let word = match result {
        Value::Object(object) => object.get("happened").unwrap_or(&Value::Null),
        other => other,
    };
    match word {
        Value::Bool(true) => VerifyAnswer::Happened,
        Value::Bool(false) => VerifyAnswer::NotYet,
        // The result may hold secrets, so the message does not quote it.
        _ => VerifyAnswer::Unknown(
            "gave no answer: its result is neither true nor false, nor an object whose \"happened\" is"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_plain_yes_or_no_of_a_success_is_an_answer() {
        for (result, expected) in [
            (json!(true), Some(true)),
            (json!(false), Some(false)),
            (json!({"happened": true, "charge": "ch_1"}), Some(true)),
            (json!({"happened": false}), Some(false)),
            (json!({"happened": "true"}), None),
            (json!({}), None),
            (json!("true"), None),
            (json!(1), None),
            (json!(0), None),
            (json!([true]), None),
            (json!(null), None),
        ] {
            let answer = match read_answer(State::Succeeded, Some(&result), None).unwrap() {
                VerifyAnswer::Happened => Some(true),
                VerifyAnswer::NotYet => Some(false),
                VerifyAnswer::Unknown(_) => None,
            };
            assert_eq!(answer, expected, "{result}");
        }
        let none = read_answer(State::Succeeded, None, None);
        assert!(
            matches!(none, Some(VerifyAnswer::Unknown(_))),
            "a success without a word is no yes"
        );
    }

    #[test]
    fn what_has_not_ended_is_waited_for_and_what_ended_otherwise_is_no_answer() {
        for state in State::ALL {
            let answer = read_answer(state, Some(&json!(true)), Some("exit_1: no such file"));
            let ended = !matches!(state, State::Pending | State::Running | State::Retrying);
            assert_eq!(answer.is_some(), ended, "{state:?}");
            if state != State::Succeeded && ended {
                assert!(matches!(answer, Some(VerifyAnswer::Unknown(_))), "{state:?}");
            }
        }
    }
}
