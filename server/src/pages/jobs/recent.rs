//! The strip of a job's last executions in the list of jobs: one small drawing, in which equal states in a row are one stroke.

use std::fmt;
use std::fmt::Write as _;

use askama::filters::HtmlSafe;
use sexton_model::state::State;

/// Width of an execution's cell and height of the strip, in pixels. The style sheet draws a gap into each cell, and
/// strokes as thick as [`Mark::height`].
const CELL_WIDTH: usize = 4;
const HEIGHT: usize = 16;

/// How an execution is drawn. The height of its bar says it to those who see no colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    Succeeded,
    UnderWay,
    Failed,
    Ended,
}

impl Mark {
    const ALL: [Self; 4] = [Self::Succeeded, Self::UnderWay, Self::Failed, Self::Ended];

    /// Judges a state by its word; one of another version has ended somehow.
    fn of(word: &str) -> Self {
        match State::parse(word) {
            Some(State::Succeeded) => Self::Succeeded,
            Some(State::Pending | State::Running | State::Retrying) => Self::UnderWay,
            Some(State::Failed) => Self::Failed,
            _ => Self::Ended,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Succeeded => "ran",
            Self::UnderWay => "under-way",
            Self::Failed => "failed",
            Self::Ended => "given-up",
        }
    }

    const fn height(self) -> usize {
        match self {
            Self::Succeeded => 16,
            Self::UnderWay => 12,
            Self::Failed => 8,
            Self::Ended => 4,
        }
    }
}

/// The states of a job's last executions, the oldest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentStrip<'a> {
    pub(super) states: &'a [String],
}

impl RecentStrip<'_> {
    /// Says what the strip shows: how many executions are in each state.
    fn label(self) -> String {
        let describe = |state: State| {
            let word = state.as_str();
            let count = self.states.iter().filter(|it| it.as_str() == word).count();
            (count > 0).then(|| format!("{count} {word}"))
        };
        let words: Vec<String> = State::ALL.into_iter().filter_map(describe).collect();
        format!("Last {}: {}", self.states.len(), words.join(", "))
    }

    /// Returns the strokes of a mark, as the data of a path.
    fn strokes(self, mark: Mark) -> Result<String, fmt::Error> {
        let middle = HEIGHT - mark.height() / 2;
        let (mut strokes, mut start) = (String::new(), 0);
        for run in self.states.chunk_by(|one, next| Mark::of(one) == Mark::of(next)) {
            if run.first().is_some_and(|state| Mark::of(state) == mark) {
                let (x, width) = (start * CELL_WIDTH, run.len() * CELL_WIDTH);
                write!(strokes, "M{x} {middle}h{width}")?;
            }
            start += run.len();
        }
        Ok(strokes)
    }
}

impl HtmlSafe for RecentStrip<'_> {}

impl fmt::Display for RecentStrip<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, label) = (self.states.len() * CELL_WIDTH, self.label());
        write!(
            f,
            r#"<svg class="recent" role="img" aria-label="{label}" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}">"#
        )?;
        for mark in Mark::ALL {
            let strokes = self.strokes(mark)?;
            if !strokes.is_empty() {
                write!(f, r#"<path class="recent-{}" d="{strokes}"/>"#, mark.class())?;
            }
        }
        f.write_str("</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(words: &[&str]) -> String {
        let states: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        RecentStrip { states: &states }.to_string()
    }

    #[test]
    fn equal_states_in_a_row_are_one_stroke_and_all_are_counted_for_a_screen_reader() {
        let text = drawn(&["succeeded", "succeeded", "failed", "retrying", "running", "succeeded"]);
        assert!(text.contains(r#"d="M0 8h8M20 8h4""#), "{text}");
        assert!(text.contains(r#"<path class="recent-failed" d="M8 12h4"/>"#), "{text}");
        assert!(text.contains(r#"<path class="recent-under-way" d="M12 10h8"/>"#), "{text}");
        for words in ["Last 6: ", "3 succeeded", "1 failed", "1 retrying", "1 running"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn the_longest_strip_is_small() {
        let words: Vec<&str> =
            State::ALL.iter().map(|state| state.as_str()).cycle().take(30).collect();
        let text = drawn(&words);
        assert!(text.len() < 900, "{} bytes: {text}", text.len());
    }

    #[test]
    fn the_style_sheet_has_strokes_as_thick_as_the_marks() {
        let sheet = include_str!("../../../assets/console.css");
        for mark in Mark::ALL {
            let rule = format!(".recent-{} {{ stroke-width: {}px;", mark.class(), mark.height());
            assert!(sheet.contains(&rule), "{rule}");
        }
    }
}
