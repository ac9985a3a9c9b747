//! Incidents: what people respond to. At most one is open for each subject.

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// How soon somebody has to respond.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Severity {
    /// When there is time.
    Low,
    /// During working hours.
    #[default]
    Medium,
    /// At once.
    High,
}

impl Severity {
    /// All of them, the lowest first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];
}

/// What an incident is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum SubjectKind {
    /// The monitor of a job.
    Job,
    /// The check of a foreign job.
    Check,
    /// A group of failures.
    Group,
    /// The platform itself.
    Platform,
    /// A channel that notifications cannot be sent to.
    Channel,
}

impl SubjectKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Job, Self::Check, Self::Group, Self::Platform, Self::Channel];
}

/// The cause of a group's incident: an operator resolved it, and it has failed again.
pub const REOPENED_GROUP: &str = "reopened_group";
/// The cause of a channel's incident: it has not accepted several messages in a row.
pub const CHANNEL_FAILS: &str = "channel_fails";

/// What people see of an incident's state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentState {
    /// Its cause lasts, and nobody has taken it on.
    Open,
    /// Somebody has taken it on: no reminders, no escalation.
    Acknowledged,
    /// Its cause is gone, or somebody resolved it.
    Resolved,
}

/// What a notification reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationKind {
    /// An incident has opened.
    Opened,
    /// A resolved incident has opened again.
    Reopened,
    /// An incident is still open.
    Reminder,
    /// Nobody acknowledged an incident in time.
    Escalated,
    /// Somebody has taken an incident on.
    Acknowledged,
    /// An incident is over.
    Resolved,
    /// A person tests the channel.
    Test,
}

text_enum!(Severity { Low => "low", Medium => "medium", High => "high" });
text_enum!(SubjectKind {
    Job => "job", Check => "check", Group => "group", Platform => "platform", Channel => "channel",
});
text_enum!(IncidentState { Open => "open", Acknowledged => "acknowledged", Resolved => "resolved" });
text_enum!(NotificationKind {
    Opened => "opened", Reopened => "reopened", Reminder => "reminder", Escalated => "escalated",
    Acknowledged => "acknowledged", Resolved => "resolved", Test => "test",
});
