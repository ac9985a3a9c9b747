//! Incidents: opened and resolved by monitors, taken on by people, and what is sent about them.
//!
//! Whatever happens to an incident is one transaction with the notifications about it, so neither exists without the
//! other. A unique index keeps a subject from having two open incidents; of two transactions that open one, the
//! second fails, and adds to the incident when it is repeated.

mod act;
mod list;
mod notify;
mod recover;
mod report;
mod summary;

pub use act::{ActError, IncidentAction, act};
pub use list::{
    Incident, IncidentEvent, IncidentFilter, count_open, find, list, read, read_timeline,
};
pub(crate) use notify::read_routes;
pub use recover::recover;
pub use report::{Occurrence, report};
pub use summary::{OpenIncident, OpenIncidents, summarize_open};

/// Occurrences and messages in a timeline; later ones are only counted. What changes the incident's state may be as many
/// entries more, and what people do is always recorded.
pub(crate) const MAX_EVENTS: i64 = 200;
/// Who resolves incidents whose cause is gone.
const RESOLVER: &str = "sexton";
/// The longest detail, in characters.
const MAX_DETAIL_CHARS: usize = 3_000;

/// Cuts a text for the database, which refuses longer ones.
fn cut(text: &str, chars: usize) -> String {
    text.chars().filter(|character| *character != '\0').take(chars).collect()
}
