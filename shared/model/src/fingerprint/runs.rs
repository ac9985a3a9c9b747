//! Runs of letters and digits: words, numbers, ids.
//!
//! | run | becomes |
//! |---|---|
//! | letters only | itself |
//! | digits, then letters (or none): `30`, `30s`, `512MiB` | `<n>` and the letters |
//! | letters, then digits: `worker3` | the letters and `<n>` |
//! | eight or more hexadecimal digits, some of them letters: `3f2a77c1` | `<n>` |
//! | eight or more, letters and digits by turns: `a1b2c3xyz` | `<n>` |
//! | by turns, but shorter: `x86b` | each number `<n>` |
//!
//! Numbers and ids have one placeholder, because an id may happen to have no letter.

use super::Pattern;

/// From this length on, a run of mixed letters and digits is an id.
const MIN_ID_CHARS: usize = 8;

/// Returns the length of the run at the beginning, in bytes.
pub(super) fn length(text: &str) -> usize {
    text.char_indices().find(|(_, c)| !c.is_alphanumeric()).map_or(text.len(), |(at, _)| at)
}

fn is_digit(character: char) -> bool {
    character.is_numeric()
}

pub(super) fn put(run: &str, out: &mut Pattern) {
    if is_id(run) {
        return number(out);
    }
    let mut digits = false;
    for character in run.chars() {
        if !is_digit(character) {
            out.push(character);
        } else if !digits {
            number(out);
        }
        digits = is_digit(character);
    }
}

/// Removes separators that belong to a number: decimals, groups of thousands and signs.
fn number(out: &mut Pattern) {
    if out.text.ends_with("<n>.") || out.text.ends_with("<n>,") {
        out.text.pop();
        out.chars -= 1;
        return;
    }
    let mut before = out.text.chars().rev();
    let sign = before.next().is_some_and(|last| matches!(last, '-' | '+'))
        && before.next().is_none_or(|last| matches!(last, ' ' | '=' | '(' | '[' | ',' | ':'));
    if sign {
        out.text.pop();
        out.chars -= 1;
    }
    out.put("<n>");
}

fn is_id(run: &str) -> bool {
    let digits = run.chars().filter(|c| is_digit(*c)).count();
    let chars = run.chars().count();
    if chars < MIN_ID_CHARS || digits == 0 || digits == chars {
        return false;
    }
    let mut turns = 0;
    let mut previous = None;
    for character in run.chars() {
        turns += usize::from(previous != Some(is_digit(character)));
        previous = Some(is_digit(character));
    }
    let hexadecimal = run.chars().all(|c| c.is_ascii_hexdigit());
    // Digits and one letter are more likely a number with its unit.
    let unit = turns == 2 && digits + 1 == chars;
    turns > 2 || (hexadecimal && !unit)
}
