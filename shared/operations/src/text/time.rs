//! Instants and durations in people's notation.

use chrono::{DateTime, SecondsFormat, Utc};

/// Formats in RFC 3339 in UTC, to the second.
pub fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Formats in RFC 3339 in UTC, to the millisecond.
pub fn precise(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Formats the distance, as in `in 3 m`, `12 s ago`, `now`.
pub fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let ms = (now - at).num_milliseconds();
    match ms {
        -999..=999 => "now".to_owned(),
        1_000.. => format!("{} ago", duration(ms)),
        _ => format!("in {}", duration(ms.saturating_neg())),
    }
}

/// Like [`ago`], in the largest unit only, for columns.
pub fn roughly(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let ms = (now - at).num_milliseconds();
    let seconds = ms.unsigned_abs() / 1_000;
    let text = match seconds {
        0 => return "now".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    };
    if ms > 0 { format!("{text} ago") } else { format!("in {text}") }
}

/// Formats a duration in its two largest units: `250 ms`, `1.2 s`, `12 s`, `3 m 5 s`, `2 h`, `12 d 3 h`.
pub fn duration(ms: i64) -> String {
    let ms = ms.max(0);
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..10 => {
            let tenths = ms % 1_000 / 100;
            if tenths == 0 { format!("{seconds} s") } else { format!("{seconds}.{tenths} s") }
        }
        10..60 => format!("{seconds} s"),
        60..3_600 => two_units(seconds / 60, "m", seconds % 60, "s", 10),
        3_600..86_400 => two_units(seconds / 3_600, "h", seconds % 3_600 / 60, "m", 10),
        _ => two_units(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h", 14),
    }
}

/// Omits the second unit once there are `enough` of the first.
fn two_units(large: i64, large_unit: &str, small: i64, small_unit: &str, enough: i64) -> String {
    if small == 0 || large >= enough {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (ms, text) in [
            (-5, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_250, "1.2 s"),
            (59_999, "59 s"),
            (185_000, "3 m 5 s"),
            (3_540_000, "59 m"),
            (7_260_000, "2 h 1 m"),
            (86_400_000, "1 d"),
            (i64::MAX, "106751991167 d"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn instants_are_told_from_now() {
        let now: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let at = |ms| now + chrono::Duration::milliseconds(ms);
        assert_eq!(ago(at(-12_000), now), "12 s ago");
        assert_eq!(ago(at(180_000), now), "in 3 m");
        assert_eq!(ago(at(500), now), "now");
        assert_eq!(roughly(at(-3_599_000), now), "59 m ago");
        assert_eq!(roughly(at(90_000_000), now), "in 1 d");
        assert_eq!(roughly(at(-999), now), "now");
    }
}
