//! The states of a bulk's items.

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// What a bulk has done with one of its executions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ItemState {
    /// A verify task or command has yet to answer whether its effect has happened.
    Unasked,
    /// The bulk will act on it.
    Waiting,
    /// The bulk has acted on it.
    Done,
    /// It had changed since it was selected.
    Refused,
    /// Its effect had happened already.
    Resolved,
    /// There was no answer whether its effect had happened.
    Left,
}

text_enum!(ItemState {
    Unasked => "unasked",
    Waiting => "waiting",
    Done => "done",
    Refused => "refused",
    Resolved => "resolved",
    Left => "left",
});

impl ItemState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Unasked, Self::Waiting, Self::Done, Self::Refused, Self::Resolved, Self::Left];

    /// Returns whether the bulk has yet to decide about it.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Unasked | Self::Waiting)
    }
}
