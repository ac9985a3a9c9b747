//! Parses the methods that carry texts of publishers (the address of a message), and the one in which the broker
//! proposes the frame size.

/// Maximum length of a method that carries a message: three texts and a few numbers.
pub(super) const MAX_BYTES: usize = 1024;

const CONNECTION: u16 = 10;
const TUNE: u16 = 30;
const BASIC: u16 = 60;
const RETURN: u16 = 50;
const DELIVER: u16 = 60;
const GET_OK: u16 = 71;

/// Returns the largest frame, in bytes, that a broker proposes by this method; 0: no limit. `None`: another method.
pub(super) fn proposed_frame_max(method: &[u8]) -> Option<u32> {
    let remaining =
        method.strip_prefix(&CONNECTION.to_be_bytes())?.strip_prefix(&TUNE.to_be_bytes())?;
    // After the largest channel number.
    remaining.get(2..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Overwrites invalid UTF-8 in the texts of a method that carries a message. Nothing depends on these texts, so their
/// replacement does not matter.
pub(super) fn replace_invalid_texts(method: &mut [u8]) {
    let number = |at: usize| Some(u16::from_be_bytes([*method.get(at)?, *method.get(at + 1)?]));
    // The bytes before the first text, and before the next.
    let layout: &[usize] = match (number(0), number(2)) {
        (Some(BASIC), Some(RETURN)) => &[2, 0, 0],
        (Some(BASIC), Some(DELIVER)) => &[0, 9, 0],
        (Some(BASIC), Some(GET_OK)) => &[9, 0],
        _ => return,
    };
    let mut remaining = &mut method[4..];
    for skipped in layout {
        let Some((length, after)) = remaining
            .split_at_mut_checked(*skipped)
            .and_then(|(_, remaining)| remaining.split_first_mut())
        else {
            return;
        };
        let Some((text, after)) = after.split_at_mut_checked(usize::from(*length)) else { return };
        replace_invalid_utf8(text);
        remaining = after;
    }
}

fn replace_invalid_utf8(mut bytes: &mut [u8]) {
    while let Err(error) = std::str::from_utf8(bytes) {
        let (_, wrong) = bytes.split_at_mut(error.valid_up_to());
        let Some((first, remaining)) = wrong.split_first_mut() else { return };
        *first = b'?';
        bytes = remaining;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_delivery_become_readable_and_nothing_else_changes() {
        let mut deliver =
            b"\0\x3c\0\x3c\x03tag\0\0\0\0\0\0\0\xff\x01\x02e\xe4\x05k\xff\xc3\xa4x".to_vec();
        replace_invalid_texts(&mut deliver);
        assert_eq!(deliver, b"\0\x3c\0\x3c\x03tag\0\0\0\0\0\0\0\xff\x01\x02e?\x05k?\xc3\xa4x");
        let mut got = b"\0\x3c\0\x47\0\0\0\0\0\0\0\x01\0\x01\xff\x01\xfe\0\0\0\xff".to_vec();
        replace_invalid_texts(&mut got);
        assert_eq!(got, b"\0\x3c\0\x47\0\0\0\0\0\0\0\x01\0\x01?\x01?\0\0\0\xff");
        let mut returned = b"\0\x3c\0\x32\xff\xfe\x01\xff\x01\xfe\x01\xfd".to_vec();
        replace_invalid_texts(&mut returned);
        assert_eq!(returned, b"\0\x3c\0\x32\xff\xfe\x01?\x01?\x01?");
    }

    #[test]
    fn other_methods_and_ends_in_the_middle_are_left_alone() {
        for whole in [&b"\0\x0a\0\x0a\xff"[..], b"\0\x3c\0\x3c\x09\xff", b"\0\x3c", b""] {
            let mut method = whole.to_vec();
            replace_invalid_texts(&mut method);
            assert_eq!(method, whole);
        }
    }
}
