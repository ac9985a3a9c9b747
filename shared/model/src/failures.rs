//! Search in failed and discarded executions.
//!
//! One [`FailureFilter`] selects executions, for lists, counts and bulks. It is stored as JSON with bulks, so its
//! names are part of the database's contract: fields are added, never renamed.

mod cursor;
mod filter;
mod group;
mod mask;
mod params;
mod reopened;
mod text;

pub use cursor::{Order, PageCursor};
pub use filter::FailureFilter;
pub use group::{GroupDecision, GroupState};
pub use mask::{MASK, is_secret, mask_secrets};
pub use params::{ConditionError, ParamCondition};
pub use reopened::ReopenedGroup;
pub use text::{MAX_TEXT_CHARS, MAX_WORDS, query as text_query};
