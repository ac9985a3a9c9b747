//! The graveyard, for whoever asks: the command line now, a page later.
//!
//! Nothing here prints. [`filter`] has the options that select executions and reads them, [`group`] finds
//! the group that they mean, [`details`] is all that is known of one execution, and [`sparkline`] draws a
//! trend.

pub mod details;
pub mod filter;
pub mod group;
pub mod sparkline;
