//! What a task wrote to stdout and stderr, line by line, within fixed bounds.
//!
//! # Guarantees
//!
//! - However much a task writes, at most the head and the tail are kept, each bounded in bytes and
//!   in lines; what lies between is counted, and memory stays bounded while it is written.
//! - Every byte written is either in a kept line (its line end included) or between two kept lines
//!   that say so. The mask that replaces a value counts as written.
//! - Masking replaces values and patterns before anything is kept; see [`mask`].
//! - The text is storable: valid UTF-8 without NUL; what is not is replaced by U+FFFD. Other control
//!   characters are kept: a program that shows them on a terminal must escape them.
//! - A worker stores new lines about once a second, and the attempt's settlement stores the remainder: no task
//!   waits for the database, and no text is stored twice.
//!
//! Lines of the two streams are in the order in which their ends arrived. A line longer than the limit becomes
//! several. A program's progress lines ([`sexton_model::progress`]) are not output.

mod capture;
mod lines;
pub mod mask;
mod recorder;
pub(crate) mod streaming;

pub use sexton_model::output::{Line, Output, Stream};

pub(crate) use self::capture::character_boundary;
pub use self::capture::{Capture, OutputLimits};
pub use self::recorder::Recorder;
