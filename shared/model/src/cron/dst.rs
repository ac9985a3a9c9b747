//! The policies for clock changes.

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// The policy for a fixed time of the day that the clocks skip (a gap) or show twice (an overlap).
///
/// Expressions whose minute or hour is written with a leading `*` describe intervals, not times of the day: they fire
/// whenever the clocks show a matching time, under any policy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// The words in jobs files.
    pub const WORDS: [&'static str; 3] = ["vixie", "skip", "wall"];
}

text_enum!(Dst { Vixie => "vixie", Skip => "skip", Wall => "wall" });
