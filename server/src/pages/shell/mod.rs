//! What all pages have in common: the visit, the frame of a page, how texts, times and charts are written, and the limits.

pub(super) mod assets;
pub(super) mod chart;
pub(super) mod copy;
pub(super) mod events;
pub(super) mod executions;
pub(super) mod form;
pub(super) mod frame;
pub(super) mod gaps;
pub(super) mod guard;
mod heading;
pub(super) mod instant;
pub(super) mod problems;
pub(super) mod query;
pub(super) mod refusal;
pub(super) mod segment;
pub(super) mod shared;
pub(super) mod timeline;
pub(super) mod visit;
