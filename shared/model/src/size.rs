//! Sizes in people's notation: `64KiB`, `512 MiB`, `2GiB`, `100B`.
//!
//! One whole number and one unit, with or without blanks between them. A bare number is refused, and so are fractions
//! and units of a thousand, because `64k` is ambiguous. All sizes are parsed here; bounds that depend on the use are
//! checked where the use is known.

/// Maximum length of a text that is parsed, in bytes.
const MAX_TEXT_BYTES: usize = 64;

/// Units, largest first, in bytes.
const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Parses a size, in bytes. `None` if the text is not a size, or exceeds 64 bits.
pub fn parse(text: &str) -> Option<u64> {
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit = unit.trim_start_matches(' ');
    let (_, bytes) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(bytes)
}

/// Formats a size in the largest unit of which it is a whole number, without a blank.
pub fn format(bytes: u64) -> String {
    let fits = |(_, unit): &(&str, u64)| bytes >= *unit && bytes.is_multiple_of(*unit);
    let (name, unit) = UNITS.into_iter().find(fits).unwrap_or(("B", 1));
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_and_a_unit_and_is_written_as_it_is_read() {
        for (text, bytes) in [("0B", 0), ("100B", 100), ("64KiB", 65_536), ("3GiB", 3 << 30)] {
            assert_eq!(parse(text), Some(bytes), "{text}");
            assert_eq!(format(bytes), text);
        }
        assert_eq!(format(1536), "1536B");
    }

    #[test]
    fn blanks_may_stand_between_the_number_and_its_unit_and_nowhere_else() {
        assert_eq!(parse("200 MiB"), Some(200 << 20));
        assert_eq!(parse("1   KiB"), Some(1024));
        for text in [" 1KiB", "1KiB ", "1 000KiB", "1 K iB", "1\tKiB", "1\u{a0}KiB", " KiB", "1 "] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "5", "KiB", "1.5KiB", "-1B", "1kb", "99999999999GiB", "1KiB1B", "1 B B"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&format!("1{}B", " ".repeat(62))), Some(1), "64 bytes");
        assert_eq!(parse(&format!("1{}B", " ".repeat(63))), None, "65 bytes");
    }
}
