//! JSON texts that would be read as something else: their integers are rounded, or a name is not taken as one.
//!
//! Integers of 64 bits, with a sign or without, are exact. A longer one becomes a float, as in most languages, and a customer's number would
//! become another customer's. So such a text is refused. A fraction or an exponent says that a float will do.

use crate::params::RESERVED_NAME;

/// The shown digits of an integer that is refused.
const MAX_SHOWN: usize = 60;

/// What would be read as something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InexactJson {
    /// An integer that neither 64 bits nor a float hold exactly.
    #[error("the integer {0} does not fit into 64 bits and would be rounded; write it as a text")]
    Rounded(String),
    /// A name is [`RESERVED_NAME`].
    #[error("the name {RESERVED_NAME} could not be read again; choose another")]
    Reserved,
}

/// Checks the integers and names of a JSON text. What is not JSON is for the one who parses it.
///
/// # Errors
///
/// [`InexactJson`]: the first.
pub fn check(json: &[u8]) -> Result<(), InexactJson> {
    let mut left = json;
    while let Some((&first, behind)) = left.split_first() {
        left = match first {
            b'"' => {
                let behind = behind_text(behind);
                let quoted = &left[..left.len() - behind.len()];
                if behind.trim_ascii_start().starts_with(b":") && is_reserved(quoted) {
                    return Err(InexactJson::Reserved);
                }
                behind
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let length = left.iter().take_while(|byte| is_part(byte)).count();
                let (number, behind) = left.split_at(length);
                check_number(&String::from_utf8_lossy(number))?;
                behind
            }
            _ => behind,
        };
    }
    Ok(())
}

/// Returns whether a text in quotes is [`RESERVED_NAME`], also if it is written with escapes.
fn is_reserved(quoted: &[u8]) -> bool {
    let is_possible = quoted.len() == RESERVED_NAME.len() + 2 || quoted.contains(&b'\\');
    is_possible && serde_json::from_slice(quoted).is_ok_and(|name: String| name == RESERVED_NAME)
}

/// What is behind the end of a text, whose first character `json` begins with.
fn behind_text(json: &[u8]) -> &[u8] {
    let mut left = json;
    loop {
        left = match left {
            [b'"', behind @ ..] => return behind,
            [b'\\', _, behind @ ..] | [_, behind @ ..] => behind,
            [] => return left,
        };
    }
}

fn check_number(number: &str) -> Result<(), InexactJson> {
    // What is no number at all is for the one who parses it.
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_exact = || {
        number.parse::<i64>().is_ok()
            || number.parse::<u64>().is_ok()
            // Written in full, with the fewest digits that differ from those of its neighbours.
            || number.parse::<f64>().is_ok_and(|float| float.to_string() == number)
    };
    if is_integer && !is_exact() {
        Err(InexactJson::Rounded(number.chars().take(MAX_SHOWN).collect()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> Option<String> {
        check(json.as_bytes()).err().map(|error| match error {
            InexactJson::Rounded(integer) => integer,
            InexactJson::Reserved => "reserved".to_owned(),
        })
    }

    #[test]
    fn integers_of_64_bits_and_whatever_is_exact_are_accepted() {
        for exact in [
            "{\"a\": [0, -0, 9007199254740993, 18446744073709551615, -9223372036854775808]}",
            "{\"a\": 100000000000000000000000000}",
            "{\"a\": 6.02214076e23, \"b\": 0.12345678901234567890123, \"c\": 1e400}",
            r#"{"123456789012345678901": "123456789012345678901", "\"": "\\", "b": "\"123456789012345678901"}"#,
            "",
            "\"unfinished 123456789012345678901",
            "\"\\",
            "{\"from\": 2026-01-01}",
            "[-, 1-2]",
        ] {
            assert_eq!(refused(exact), None, "{exact}");
        }
    }

    #[test]
    fn a_name_that_the_reader_would_not_take_as_one_is_refused_and_the_same_text_as_a_value_is_not()
    {
        for json in [
            r#"{"$serde_json::private::RawValue":"1"}"#,
            "{\"a\": [{\"$serde_json::private::RawValue\"\n: 1}]}",
            r#"{"\u0024serde_json::private::RawValue": 1}"#,
        ] {
            assert_eq!(refused(json).as_deref(), Some("reserved"), "{json}");
        }
        let value =
            r#"{"a": "$serde_json::private::RawValue", "$serde_json::private::Raw": 1, "b\\": 2}"#;
        assert_eq!(refused(value), None);
    }

    #[test]
    fn an_integer_that_would_be_rounded_is_named() {
        for (json, integer) in [
            ("18446744073709552000", None),
            ("18446744073709551616", Some("18446744073709551616")),
            ("18446744073709551617", Some("18446744073709551617")),
            ("-9223372036854775809", Some("-9223372036854775809")),
            ("[\"\\\\\",123456789012345678901234567890]", Some("123456789012345678901234567890")),
            ("{\"a\":{\"b\\\"\":-36893488147419103233}}", Some("-36893488147419103233")),
        ] {
            assert_eq!(refused(json).as_deref(), integer, "{json}");
        }
        let long = "9".repeat(400);
        assert_eq!(refused(&long).map(|shown| shown.len()), Some(MAX_SHOWN));
    }
}
