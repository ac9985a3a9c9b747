//! Bytes, for people.

use std::fmt::Write as _;

/// Bytes of a line of the dump.
const DUMP_LINE_BYTES: usize = 16;

/// The first `max_bytes` bytes as offsets, hexadecimal digits and printable ASCII.
pub fn hex_dump(bytes: &[u8], max_bytes: usize) -> String {
    let mut text = String::new();
    for (number, line) in bytes[..bytes.len().min(max_bytes)].chunks(DUMP_LINE_BYTES).enumerate() {
        let mut digits = String::with_capacity(DUMP_LINE_BYTES * 3 + 1);
        for (at, byte) in line.iter().enumerate() {
            let gap = if at == DUMP_LINE_BYTES / 2 { "  " } else { " " };
            // Writing to a String cannot fail.
            let _ = write!(digits, "{gap}{byte:02x}");
        }
        let plain: String = line
            .iter()
            .map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' })
            .collect();
        let offset = number * DUMP_LINE_BYTES;
        let width = DUMP_LINE_BYTES * 3 + 1;
        let _ = writeln!(text, "{offset:08x} {digits:<width$}  |{plain}|");
    }
    if bytes.len() > max_bytes {
        let _ = writeln!(text, "… and {} bytes more", bytes.len() - max_bytes);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_shows_every_byte_and_sends_none_to_the_terminal() {
        let dump = hex_dump(b"\x1b[31m{\"type\":\xff\x00}", 64);
        assert_eq!(
            dump,
            "00000000  1b 5b 33 31 6d 7b 22 74  79 70 65 22 3a ff 00 7d  |.[31m{\"type\":..}|\n"
        );
        let cut = hex_dump(&[b'a'; 40], 17);
        let lines: Vec<_> = cut.lines().collect();
        assert_eq!(lines.len(), 3, "{cut}");
        assert!(lines[1].starts_with("00000010  61 ") && lines[1].ends_with("  |a|"), "{cut}");
        assert_eq!(lines[2], "… and 23 bytes more");
        assert_eq!(hex_dump(b"", 16), "");
    }
}
