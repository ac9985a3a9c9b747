//! What a change of the clocks means for a job.

use serde::{Deserialize, Serialize};

use crate::job::text_enum;

/// What becomes of a fixed time of the day on a day on which the clocks change: of one that the
/// clocks pass over (a gap), and of one that they show twice (an overlap).
///
/// Expressions whose minute or hour is written with a leading `*` are about intervals, not times of
/// the day: they fire whenever the clocks show what they select, whatever is chosen here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dst {
    /// Gap: once, at the first instant after it. Overlap: in the first pass only.
    #[default]
    Vixie,
    /// Gap: not at all. Overlap: in the first pass only.
    Skip,
    /// Gap: once, at the first instant after it. Overlap: in both passes.
    Wall,
}

impl Dst {
    /// The words that people may write.
    pub const WORDS: [&'static str; 3] = ["vixie", "skip", "wall"];
}

text_enum!(Dst { Vixie => "vixie", Skip => "skip", Wall => "wall" });
