//! Heartbeats of jobs: reports to an outside watcher, in the form that Healthchecks reads.

use std::fmt::Display;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::notification;
use crate::secret_ref::SecretRef;
use crate::text_enum::text_enum;

/// How long a heartbeat is tried. Later it would report a time that is long past.
pub const MAX_AGE: Duration = Duration::from_hours(1);
/// Most heartbeats of a job that wait, and most that are kept; older ones are dropped.
pub const MAX_OF_JOB: i64 = 100;
/// How long a heartbeat that was tried waits before it counts as undelivered.
pub const UNDELIVERED_AFTER: Duration = Duration::from_mins(10);
/// How long one that was dropped, having been tried, counts as undelivered: a job that does not run any more reports nothing that
/// could arrive.
pub const DROPPED_COUNTS_FOR: Duration = Duration::from_hours(24);
/// Time limit of one try.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of tries after which the wait does not grow any more, at about five minutes.
const MAX_DOUBLINGS: i32 = 6;

/// A job's `heartbeat`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobHeartbeat {
    /// Where it goes.
    pub url: HeartbeatUrl,
    /// What it reports, each once, in the order of [`HeartbeatEvent::ALL`].
    pub on: Vec<HeartbeatEvent>,
    /// Whether the host may have an address that is not public.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
}

/// The URL of a heartbeat.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HeartbeatUrl {
    /// The URL itself.
    Plain(String),
    /// Where the URL is, which is a secret.
    Secret(SecretRef),
}

/// What a heartbeat reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeartbeatEvent {
    /// An attempt begins.
    Start,
    /// The execution has succeeded.
    Success,
    /// The execution has failed for good.
    Failure,
}

text_enum!(HeartbeatEvent { Start => "start", Success => "success", Failure => "failure" });

impl HeartbeatEvent {
    /// All of them, in the order of their names' occurrence in a run.
    pub const ALL: [Self; 3] = [Self::Start, Self::Success, Self::Failure];

    /// Returns what follows the path of the URL.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Start => "/start",
            Self::Success => "",
            Self::Failure => "/fail",
        }
    }
}

/// What is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatMessage {
    /// What it reports.
    pub event: HeartbeatEvent,
    /// The job's name.
    pub job: String,
    /// The execution's id.
    pub execution: String,
    /// The attempt's number.
    pub attempt: i32,
    /// The last error of a failure.
    pub error: Option<String>,
}

impl HeartbeatMessage {
    /// Returns the URL of the request: the path with `/start` or `/fail`, and the execution as `rid`, so that a receiver can tell
    /// overlapping runs apart. A query stays.
    pub fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        let suffix = self.event.suffix();
        if !suffix.is_empty() {
            let path = format!("{}{suffix}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        url.query_pairs_mut().append_pair("rid", &self.execution);
        url
    }

    /// Returns the body of the request, for people.
    pub fn body(&self) -> String {
        let outcome = match self.event {
            HeartbeatEvent::Start => "begins",
            HeartbeatEvent::Success => "succeeded",
            HeartbeatEvent::Failure => "failed",
        };
        let error = self.error.as_ref().map(|error| format!("error: {error}\n"));
        let Self { job, execution, attempt, .. } = self;
        format!(
            "job: {job}\nexecution: {execution}\nattempt: {attempt}\noutcome: {outcome}\n{}",
            error.unwrap_or_default()
        )
    }
}

impl Display for HeartbeatUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(url) => f.write_str(url),
            Self::Secret(reference) => write!(f, "the URL {reference}"),
        }
    }
}

impl Display for JobHeartbeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let on: Vec<&str> = self.on.iter().map(|event| event.as_str()).collect();
        write!(f, "{}, on {}", self.url, on.join(", "))
    }
}

/// Returns the wait before the next try of a heartbeat: as for [notifications](notification::retry_in), but at most about five
/// minutes, or what the receiver says.
pub fn retry_in(tries: i32, is_refused: bool, after: Option<Duration>, jitter: f64) -> Duration {
    notification::retry_in(tries.min(MAX_DOUBLINGS), is_refused, after, jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(event: HeartbeatEvent) -> HeartbeatMessage {
        HeartbeatMessage {
            event,
            job: "billing.charge".to_owned(),
            execution: "01a20ddb-d340-7542-92b7-3cf6e02be5f1".to_owned(),
            attempt: 2,
            error: (event == HeartbeatEvent::Failure).then(|| "exit_1: exit code 1".to_owned()),
        }
    }

    #[test]
    fn the_path_says_what_happened_and_the_query_which_run() {
        let rid = "rid=01a20ddb-d340-7542-92b7-3cf6e02be5f1";
        for (base, event, wanted) in [
            ("https://hc.example/ping/abc", HeartbeatEvent::Start, "/ping/abc/start?"),
            ("https://hc.example/ping/abc/", HeartbeatEvent::Failure, "/ping/abc/fail?"),
            ("https://hc.example/ping/abc", HeartbeatEvent::Success, "/ping/abc?"),
            ("https://hc.example/a?x=1", HeartbeatEvent::Start, "/a/start?x=1&"),
            ("https://hc.example", HeartbeatEvent::Failure, "/fail?"),
        ] {
            let url = message(event).url(&Url::parse(base).unwrap());
            assert_eq!(url.as_str(), format!("https://hc.example{wanted}{rid}"));
        }
    }

    #[test]
    fn the_body_says_what_happened() {
        assert_eq!(
            message(HeartbeatEvent::Failure).body(),
            "job: billing.charge\nexecution: 01a20ddb-d340-7542-92b7-3cf6e02be5f1\nattempt: 2\noutcome: failed\n\
             error: exit_1: exit code 1\n"
        );
        assert!(message(HeartbeatEvent::Start).body().ends_with("outcome: begins\n"));
    }

    #[test]
    fn the_wait_grows_to_about_five_minutes() {
        let wait = |tries, refused| retry_in(tries, refused, None, 0.5).as_secs();
        assert_eq!((wait(1, false), wait(3, false)), (10, 40));
        assert_eq!((wait(6, false), wait(50, false), wait(1, true)), (320, 320, 300));
    }

    #[test]
    fn a_heartbeat_survives_the_database() {
        for url in [
            HeartbeatUrl::Plain("https://hc.example/ping/abc".to_owned()),
            HeartbeatUrl::Secret(SecretRef::Env("HC_URL".to_owned())),
        ] {
            let heartbeat =
                JobHeartbeat { url, on: HeartbeatEvent::ALL.to_vec(), allow_private: true };
            let json = serde_json::to_value(&heartbeat).unwrap();
            assert_eq!(serde_json::from_value::<JobHeartbeat>(json).unwrap(), heartbeat);
        }
    }
}
