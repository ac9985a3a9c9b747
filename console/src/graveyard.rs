//! The graveyard, for whoever asks: the command line now, a page later.
//!
//! Nothing here prints or knows options. [`asked`] reads what people write into a filter, [`group`] finds
//! the group that they mean, [`story`] is all that is known of one execution, and [`sparkline`] draws a
//! trend.

pub mod asked;
pub mod group;
pub mod sparkline;
pub mod story;
