//! The graveyard: what failed (or was discarded) and waits for an operator, as people look for it.
//!
//! One [`Filter`] says which executions are meant, for lists, counts and what is done to all of them. It
//! is stored as JSON beside what is done by it, so its names are part of the database's contract: fields
//! are added, never renamed.

mod cursor;
mod filter;
mod group;
mod mask;
mod params;
mod text;

pub use cursor::{Cursor, NoCursor, Order};
pub use filter::Filter;
pub use group::{Decision, GroupState};
pub use mask::{MASK, is_secret, masked};
pub use params::{NoCondition, ParamEquals};
pub use text::{MAX_TEXT_CHARS, MAX_WORDS, query as text_query};
