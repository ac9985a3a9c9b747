//! Numbers of bytes as people write them: `64KiB`, `512MiB`, `2GiB`, `100B`.

/// Units, largest first, in bytes.
const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Reads a size: one whole number and one unit. `None` if the text is none.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, bytes) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(bytes)
}

/// Writes a size in the largest unit that it is a whole number of.
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
        for text in ["", "5", "KiB", "1.5KiB", "-1B", "1 KiB", "1kb", "99999999999GiB", "1KiB1B"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
