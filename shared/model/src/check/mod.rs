//! Checks: monitors of foreign jobs, which report by pings.
//!
//! A job that runs elsewhere pings an address when it begins, ends or fails. A check knows when a ping is expected. Each ping
//! that reports a failure, each run that does not end in time and each expected instant without a ping counts once as a
//! violation, however often and by which scheduler the check is judged.

mod expected;
mod judge;
mod runs;
mod sentences;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::cron::Expression;
use crate::incident::Severity;
use crate::text_enum::text_enum;
use crate::zone::Zone;

pub use judge::{CAUSES, CheckJudgement, judge};

/// Newest pings of a check, without logs, that a judgement reads, and that are kept.
pub const MAX_PINGS: usize = 200;
/// The shortest time without a process that accepts pings that forgives missing ones. In a shorter one clients have to try again.
pub const MIN_PAUSE: Duration = Duration::from_secs(10);
/// How long after it was deleted a check is removed: longer than any statement that may still record a ping of it.
pub const REMOVED_AFTER: Duration = Duration::from_mins(5);
/// Longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 100;
/// Bytes of a ping's body that are kept.
pub const MAX_BODY_BYTES: usize = 10_000;

/// A check as people define it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckSpec {
    /// Unique; see [`is_check_name`].
    pub name: String,
    /// When a ping is expected.
    pub cadence: Cadence,
    /// How late a ping may be.
    pub grace: Duration,
    /// How long before its time a ping counts already; `None`: a tenth of the distance to the next one, at most 5 minutes. Only
    /// for schedules: a period counts from the last ping.
    pub early_by: Option<Duration>,
    /// The longest time from a start to its end; `None`: `grace`.
    pub max_runtime: Option<Duration>,
    /// Violations in a row that open an incident, 1 to 100.
    pub alert_after: Option<u32>,
    /// Successes that resolve it, 1 to 100.
    pub recover_after: Option<u32>,
    /// Time between reminders; `None`: none.
    pub remind_every: Option<Duration>,
    /// Severity of its incidents; `None`: medium.
    pub severity: Option<Severity>,
    /// For routes.
    pub labels: BTreeMap<String, String>,
    /// Name of the key with which jobs ping it by its name; `None`: by its id alone.
    pub key: Option<String>,
}

/// When a ping is expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cadence {
    /// So long after the last one.
    Every(Duration),
    /// By a cron expression.
    Schedule {
        /// Its text, which parses.
        expression: String,
        /// Its zone.
        zone: Zone,
    },
}

/// Returns whether a text may name a check: 1 to 100 lower-case letters, digits, `.`, `_` and `-`, of which the first is a letter or a
/// digit.
pub fn is_check_name(text: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins && text.len() <= MAX_NAME_BYTES && text.bytes().all(is_part)
}

/// What a ping reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PingKind {
    /// A run has begun.
    Start,
    /// A run has ended well.
    Success,
    /// A run has failed.
    Fail,
    /// A text for people; changes nothing.
    Log,
}

text_enum!(PingKind { Start => "start", Success => "success", Fail => "fail", Log => "log" });

/// A ping, as a judgement sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ping {
    /// `pings.id`.
    pub id: i64,
    /// When it arrived.
    pub at: DateTime<Utc>,
    /// What it reports.
    pub kind: PingKind,
    /// The exit status that it reports.
    pub exit_code: Option<u8>,
    /// The run that it belongs to.
    pub rid: Option<Uuid>,
    /// The end of what it sent along.
    pub body: Option<String>,
    /// The program that sent it.
    pub agent: Option<String>,
}

/// Whether pings are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// When the last pause of at least [`MIN_PAUSE`] began; `None`: before `up_since` nobody has ever accepted pings.
    pub paused_from: Option<DateTime<Utc>>,
    /// When it ended.
    pub up_since: DateTime<Utc>,
    /// When a process last said that it accepts pings.
    pub seen_at: DateTime<Utc>,
}

impl Endpoint {
    fn pause(self) -> Pause {
        let from = self.paused_from.unwrap_or(DateTime::<Utc>::UNIX_EPOCH);
        Pause { from, until: self.up_since }
    }
}

/// A time in which nobody accepted pings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pause {
    from: DateTime<Utc>,
    until: DateTime<Utc>,
}

impl Pause {
    fn touches(self, from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        self.from <= until && self.until >= from
    }
}

/// What is known of a check when it is judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// Its definition.
    pub spec: CheckSpec,
    /// The parsed schedule of [`Cadence::Schedule`].
    pub expression: Option<Expression>,
    /// Whether nothing is expected.
    pub is_paused: bool,
    /// When what it expects last changed.
    pub changed_at: DateTime<Utc>,
    /// When it was deleted.
    pub deleted_at: Option<DateTime<Utc>>,
    /// `None`: no process has ever accepted pings.
    pub endpoint: Option<Endpoint>,
    /// Its newest pings without logs, at most [`MAX_PINGS`], in the order in which they arrived.
    pub pings: Vec<Ping>,
}

/// What a check remembers from judgement to judgement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckMemory {
    /// Violations in a row.
    pub violations: u32,
    /// When the last of these happened.
    pub violated_at: Option<DateTime<Utc>>,
    /// Pings that are counted as violations: failures, and starts of runs that did not end in time.
    pub counted: Vec<i64>,
    /// Up to when what was expected is settled: missed, or forgiven.
    pub settled_to: Option<DateTime<Utc>>,
    /// Whether an incident of the check is open.
    pub is_open: bool,
}

fn last_ping(check: &Check) -> Option<&Ping> {
    check.pings.iter().rev().find(|ping| ping.kind != PingKind::Log)
}

/// Limits of a check are at most some years.
fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX / 4)
}
