//! Words for people in answers: text of others on one line and without escapes, instants and durations.
//!
//! Evidence and reasons are sentences, and they are the same in a terminal, a page and an API's answer. They quote
//! what tasks, brokers and operators wrote, so a quoted text is made safe here, where the sentence is written.

mod safe;
mod time;

pub use safe::{ascii_controls, line, lines};
pub use time::{ago, duration, instant, precise, roughly};
