//! Finds the nearest known words to a misspelt one.

use strsim::{levenshtein, osa_distance};

/// Maximum length of a word that is compared, in characters. It bounds the work; known words are shorter.
const MAX_WORD_CHARS: usize = 40;

/// Returns the known word nearest to `word`; `None` if none is near enough to be a misspelling. Two swapped letters
/// are one mistake.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known
        .into_iter()
        .filter_map(|candidate| Some((distance(word, candidate, osa_distance)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of letters to insert, remove or exchange to make `candidate` of `word`; `None` if they are too
/// many for a misspelling. Two swapped letters are two mistakes: for short names with the same letters, such as UTC
/// and UCT.
pub(crate) fn nearness(word: &str, candidate: &str) -> Option<usize> {
    distance(word, candidate, levenshtein)
}

/// Ignores case, and the difference between `-`, `_` and a blank.
fn distance(word: &str, candidate: &str, count: fn(&str, &str) -> usize) -> Option<usize> {
    if word.chars().nth(MAX_WORD_CHARS).is_some() {
        return None;
    }
    let (word, candidate) = (plain(word), plain(candidate));
    let max_distance = (word.chars().count().max(candidate.len()) / 3).max(1);
    Some(count(&word, &candidate)).filter(|distance| *distance <= max_distance)
}

fn plain(text: &str) -> String {
    let plain = |c: char| if matches!(c, '-' | ' ') { '_' } else { c.to_ascii_lowercase() };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_the_one_that_was_meant() {
        let known = ["schedule", "timezone", "task", "lock_key", "at"];
        for (word, expected) in [
            ("shedule", Some("schedule")),
            ("Timezone", Some("timezone")),
            ("lock-key", Some("lock_key")),
            ("lockKey", Some("lock_key")),
            ("tasks", Some("task")),
            ("shcedule", Some("schedule")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest(&"task".repeat(1_000), known), None);
    }
}
