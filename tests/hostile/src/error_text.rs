//! Error texts about hostile input are short, and no terminal executes a part of them.
//!
//! A reason ends up in logs, on terminals and in headers of parked messages. An escape sequence
//! there could recolour, overwrite or hide what the operator reads, and a reason without a limit
//! fills disks.

/// Panics unless `text` is one line of at most `max_bytes` that a terminal shows as it stands.
pub fn check(text: &str, max_bytes: usize) {
    let bytes = text.len();
    assert!(bytes <= max_bytes, "the error has {bytes} bytes, more than {max_bytes}: {text:.200}…");
    assert!(!text.is_empty(), "the error has no text");
    if let Some(found) = text.chars().find(|&character| is_terminal_control(character)) {
        panic!("{found:?} is not escaped: {text:?}");
    }
}

/// Whether a terminal would act on the character, or show text in another order because of it.
pub fn is_terminal_control(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
