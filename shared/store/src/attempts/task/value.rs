//! The first column of a row, as JSON.

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use sexton_model::exact_json;
use sqlx::postgres::PgRow;
use sqlx::{Row as _, TypeInfo as _, ValueRef as _};
use uuid::Uuid;

/// Returns the value, unless it is null or of a type without a JSON counterpart.
pub(super) fn json_of(row: &PgRow) -> Option<Value> {
    let raw = row.try_get_raw(0).ok()?;
    if raw.is_null() {
        return None;
    }
    let kind = raw.type_info().name().to_owned();
    Some(match kind.as_str() {
        "JSON" | "JSONB" => {
            let raw: &RawValue = row.try_get(0).ok()?;
            exact(raw.get())
        }
        "BOOL" => Value::Bool(row.try_get(0).ok()?),
        "INT2" => row.try_get::<i16, _>(0).ok()?.into(),
        "INT4" => row.try_get::<i32, _>(0).ok()?.into(),
        "INT8" => row.try_get::<i64, _>(0).ok()?.into(),
        "FLOAT4" => Value::Number(Number::from_f64(row.try_get::<f32, _>(0).ok()?.into())?),
        "FLOAT8" => Value::Number(Number::from_f64(row.try_get(0).ok()?)?),
        "NUMERIC" => exact(&decimal(raw.as_bytes().ok()?)?),
        "TEXT" | "VARCHAR" | "CHAR" | "NAME" => Value::String(row.try_get(0).ok()?),
        "UUID" => Value::String(row.try_get::<Uuid, _>(0).ok()?.to_string()),
        "DATE" => Value::String(row.try_get::<NaiveDate, _>(0).ok()?.to_string()),
        "TIMESTAMP" => {
            let at: NaiveDateTime = row.try_get(0).ok()?;
            Value::String(at.format("%Y-%m-%dT%H:%M:%S%.f").to_string())
        }
        "TIMESTAMPTZ" => {
            let at: DateTime<Utc> = row.try_get(0).ok()?;
            Value::String(at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
        }
        _ => return None,
    })
}

/// Parses JSON. What holds an integer that would be rounded, or a number beyond all floats, stays a text.
fn exact(json: &str) -> Value {
    let checked = exact_json::check(json.as_bytes()).ok();
    checked
        .and_then(|()| serde_json::from_str(json).ok())
        .unwrap_or_else(|| Value::String(json.to_owned()))
}

/// Formats a `numeric` from its wire form: digits to the base of 10,000, and the position of the point. `None` for
/// `NaN` and infinities.
fn decimal(bytes: &[u8]) -> Option<String> {
    let mut words = bytes.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    let (count, weight) = (words.next()?, words.next()?.cast_signed());
    let (sign, scale) = (words.next()?, usize::from(words.next()?));
    let sign = match sign {
        0 => "",
        0x4000 => "-",
        _ => return None,
    };
    let digits: Vec<u16> = words.take(usize::from(count)).collect();
    // The position of a group of four digits: 0 is directly before the point.
    let group = |place: i32| {
        let at = usize::try_from(i32::from(weight) - place).ok();
        at.and_then(|at| digits.get(at)).copied().unwrap_or(0)
    };
    let whole: String =
        (0..=i32::from(weight).max(0)).rev().flat_map(|p| group_digits(group(p))).collect();
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let mut fraction: String =
        (1..=scale.div_ceil(4)).flat_map(|p| group_digits(group(-(p as i32)))).collect();
    fraction.truncate(scale);
    let point = if scale > 0 { "." } else { "" };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// A group's digits.
fn group_digits(group: u16) -> [char; 4] {
    [1000, 100, 10, 1].map(|unit| char::from(b'0' + (group / unit % 10) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> Vec<u8> {
        [&[digits.len() as u16, weight.cast_unsigned(), sign, scale], digits]
            .concat()
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect()
    }

    #[test]
    fn a_numeric_is_read_to_its_last_digit() {
        for (text, bytes) in [
            ("0", sent(0, 0, 0, &[])),
            ("0.00", sent(0, 0, 2, &[])),
            ("12345678.90", sent(1, 0, 2, &[1234, 5678, 9000])),
            ("-0.05", sent(-1, 0x4000, 2, &[500])),
            ("100000000", sent(2, 0, 0, &[1])),
            ("0.00012", sent(-1, 0, 5, &[1, 2000])),
        ] {
            assert_eq!(decimal(&bytes).as_deref(), Some(text));
        }
        assert_eq!(decimal(&sent(0, 0xC000, 0, &[])), None, "NaN");
        assert_eq!(decimal(&[0, 1]), None, "cut short");
    }

    #[test]
    fn an_integer_that_would_be_rounded_stays_a_text() {
        assert_eq!(exact("18446744073709551615"), Value::from(u64::MAX));
        for text in ["18446744073709551616", "[123456789012345678901]", "1e400"] {
            assert_eq!(exact(text), Value::from(text));
        }
    }
}
