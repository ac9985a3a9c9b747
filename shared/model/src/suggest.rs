//! The nearest known words to a misspelt one.

/// Longer words are not compared: nothing that is known has so long a name.
const MAX_WORD_CHARS: usize = 40;

/// The known word most similar to `word`; `None` if nothing is near.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let letters = letters(word)?;
    known
        .iter()
        .map(|candidate| (distance(&letters, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= max_distance(&letters, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How far `word` is from `candidate`; `None` if nobody would take one for the other.
pub(crate) fn nearness(word: &str, candidate: &str) -> Option<usize> {
    let letters = letters(word)?;
    let distance = distance(&letters, candidate);
    (distance <= max_distance(&letters, candidate)).then_some(distance)
}

fn letters(word: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = word.chars().take(MAX_WORD_CHARS + 1).collect();
    (letters.len() <= MAX_WORD_CHARS).then_some(letters)
}

fn max_distance(word: &[char], candidate: &str) -> usize {
    (word.len().max(candidate.len()) / 3).max(1)
}

/// Insertions, deletions and substitutions between the two. Case, `-`, `_` and blanks make no
/// difference.
fn distance(word: &[char], candidate: &str) -> usize {
    let plain = |c: char| if matches!(c, '-' | ' ') { '_' } else { c.to_ascii_lowercase() };
    let candidate: Vec<char> = candidate.chars().map(plain).collect();
    let mut row: Vec<usize> = (0..=candidate.len()).collect();
    for (i, &c) in word.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &other) in candidate.iter().enumerate() {
            let substituted = diagonal + usize::from(plain(c) != other);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[candidate.len()]
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
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), expected, "{word}");
        }
        assert_eq!(nearest(&"task".repeat(1_000), &known), None);
    }
}
