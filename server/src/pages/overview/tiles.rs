//! Numbers at a glance, each with a link to what it counts.

use sexton_operations::status::{MAX_COUNTED_DUE, RecordedStatus, Warning};
use sexton_operations::text::{ago, duration};
use sexton_operations::workers::MAX_HEARTBEAT_AGE_MS;
use sexton_store::instances::Instance;
use sexton_store::status::DueExecutions;

/// Tickets are published within a second or so; the relay takes over after five.
const MAX_UNPUBLISHED_MS: i64 = 15_000;
/// An execution that is due and waits for longer than this has no free worker.
const LONG_WAIT_MS: i64 = 60_000;

/// How urgently a number needs attention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tone {
    Plain,
    Good,
    Warning,
    Bad,
}

impl Tone {
    /// The class in the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Warning => "warn",
            Self::Bad => "bad",
        }
    }
}

/// A number at a glance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tile {
    pub(super) id: &'static str,
    pub(super) value: String,
    pub(super) name: &'static str,
    /// What it means, or more about it.
    pub(super) detail: String,
    pub(super) path: &'static str,
    pub(super) tone: Tone,
}

/// The executions of the last hour, and how long ago they were counted, if that is a while ago; or why they are not counted.
pub(super) type DueCount = Result<(DueExecutions, Option<String>), String>;

/// Returns the numbers, those first that people look at first.
pub(super) fn tiles(status: &RecordedStatus, failed_last_day: i64, due: &DueCount) -> Vec<Tile> {
    let mut tiles = vec![
        incidents(status),
        failed(status),
        failed_lately(failed_last_day),
        due_lately(due),
        longest_wait(status),
        unpublished(status),
        workers(&status.instances),
        schedulers(&status.instances),
        jobs(status),
    ];
    let held = status.warnings.iter().find_map(|warning| match warning {
        Warning::CatchUpHeld(hold) => Some(hold),
        _ => None,
    });
    if let Some(hold) = held {
        tiles.push(Tile {
            id: "held",
            value: hold.firings.to_string(),
            name: "Held firings",
            detail: format!("late, of {}; an operator decides", counted(hold.jobs, "job", "jobs")),
            path: "/firings",
            tone: Tone::Bad,
        });
    }
    tiles
}

fn counted(count: i64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Writes a number that may be long: `1,000,000`.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let places = (1..=digits.len()).rev();
    let mut text = String::new();
    for (digit, place) in digits.chars().zip(places) {
        text.push(digit);
        if place % 3 == 1 && place > 1 && digit.is_ascii_digit() {
            text.push(',');
        }
    }
    text
}

fn incidents(status: &RecordedStatus) -> Tile {
    let open = &status.incidents;
    let counts = [("high", open.high), ("medium", open.medium), ("low", open.low)];
    let named = counts.iter().filter(|(_, count)| *count > 0);
    let named: Vec<String> = named.map(|(name, count)| format!("{count} {name}")).collect();
    let (tone, detail) = match (open.high, open.count()) {
        (_, 0) => (Tone::Good, "nothing to respond to".to_owned()),
        (0, _) => (Tone::Warning, named.join(", ")),
        _ => (Tone::Bad, named.join(", ")),
    };
    let value = open.count().to_string();
    Tile { id: "incidents", value, name: "Open incidents", detail, path: "/incidents", tone }
}

fn failed(status: &RecordedStatus) -> Tile {
    let overview = &status.overview;
    let (tone, detail) = match overview.oldest_failed_at {
        Some(oldest) => {
            (Tone::Bad, format!("wait for you; the oldest {}", ago(oldest, overview.now)))
        }
        None => (Tone::Good, "nothing waits for a decision".to_owned()),
    };
    let value = grouped(overview.failed);
    Tile { id: "failed", value, name: "Failed now", detail, path: "/failed", tone }
}

fn failed_lately(failed: i64) -> Tile {
    Tile {
        id: "failed-lately",
        value: grouped(failed),
        name: "Failed within 24 h",
        detail: "of those that are failed now".to_owned(),
        path: "/failed?since=24h",
        tone: if failed > 0 { Tone::Warning } else { Tone::Plain },
    }
}

fn due_lately(due: &DueCount) -> Tile {
    let (value, detail, tone) = match due {
        Ok((count, age)) => {
            let value = match (count.due, count.is_cut_short) {
                (MAX_COUNTED_DUE.., true) => "10,000+".to_owned(),
                (due, true) => format!("{}+", grouped(due)),
                (due, false) => grouped(due),
            };
            // What was enqueued long before it was due may lie beyond these, and the count does not know of it.
            let among = "of the last 10,000 that were claimed or enqueued";
            let mut detail =
                format!("{} of them have succeeded; {among}", grouped(count.succeeded));
            if let Some(age) = age {
                detail = format!("{detail}; counted {age}");
            }
            (value, detail, Tone::Plain)
        }
        Err(error) => {
            let error = sexton_operations::text::line(error, 100);
            ("?".to_owned(), format!("cannot be counted: {error}"), Tone::Warning)
        }
    };
    let (id, name) = ("due-lately", "Due within the last hour");
    Tile { id, value, name, detail, path: "/executions?since=1h&until=now", tone }
}

fn longest_wait(status: &RecordedStatus) -> Tile {
    let waits = status.pools.iter().filter_map(|pool| Some((pool.oldest_due_ms?, &pool.pool)));
    let (value, detail, tone) = match waits.max() {
        Some((ms, pool)) => {
            let tone = if ms > LONG_WAIT_MS { Tone::Warning } else { Tone::Plain };
            let pool = sexton_operations::text::line(pool, 40);
            (duration(ms), format!("for a worker of pool {pool}"), tone)
        }
        None => ("none".to_owned(), "nothing that is due waits".to_owned(), Tone::Good),
    };
    Tile { id: "longest-wait", value, name: "Longest wait", detail, path: "/workers#pools", tone }
}

fn unpublished(status: &RecordedStatus) -> Tile {
    let overview = &status.overview;
    let (tone, detail) = match overview.oldest_unpublished_ms {
        Some(ms) if ms > MAX_UNPUBLISHED_MS => {
            (Tone::Bad, format!("not in RabbitMQ for {}: is it there?", duration(ms)))
        }
        Some(ms) => (Tone::Plain, format!("on their way to RabbitMQ, for {}", duration(ms))),
        None => (Tone::Good, "RabbitMQ has every message".to_owned()),
    };
    let value = grouped(overview.unpublished);
    let path = "/executions";
    Tile { id: "unpublished", value, name: "Unpublished tickets", detail, path, tone }
}

/// Counts the processes of a kind that are alive, and the silent ones.
fn alive<'a>(instances: &'a [Instance], kind: &str) -> (Vec<&'a Instance>, usize) {
    let of_kind = instances.iter().filter(|instance| instance.kind == kind);
    let (alive, silent): (Vec<_>, Vec<_>) =
        of_kind.partition(|instance| instance.silent_ms <= MAX_HEARTBEAT_AGE_MS);
    (alive, silent.len())
}

fn process_tone(alive: usize, silent: usize) -> Tone {
    match (alive, silent) {
        (0, _) => Tone::Bad,
        (_, 0) => Tone::Good,
        _ => Tone::Warning,
    }
}

fn workers(instances: &[Instance]) -> Tile {
    let (alive, silent) = alive(instances, "worker");
    let running: i64 = alive.iter().map(|worker| worker.running).sum();
    let slots: i64 = alive.iter().map(|worker| i64::from(worker.slots)).sum();
    let busy = format!("{running} of {slots} slots busy");
    let detail = if silent > 0 { format!("{busy}; {silent} silent") } else { busy };
    let (value, tone) = (alive.len().to_string(), process_tone(alive.len(), silent));
    Tile { id: "workers", value, name: "Workers alive", detail, path: "/workers", tone }
}

fn schedulers(instances: &[Instance]) -> Tile {
    let (alive, silent) = alive(instances, "scheduler");
    let detail = match (alive.len(), silent) {
        (0, _) => "nothing is scheduled: start one".to_owned(),
        (_, 0) => "they share the work".to_owned(),
        (_, silent) => format!("{silent} silent"),
    };
    let (value, tone) = (alive.len().to_string(), process_tone(alive.len(), silent));
    let path = "/workers#schedulers";
    Tile { id: "schedulers", value, name: "Schedulers alive", detail, path, tone }
}

fn jobs(status: &RecordedStatus) -> Tile {
    let overview = &status.overview;
    let next = match overview.next_fire_at {
        Some(at) if at < overview.now => format!("the next was due {}", ago(at, overview.now)),
        Some(at) => format!("the next fires {}", ago(at, overview.now)),
        None => "nothing is scheduled".to_owned(),
    };
    let detail = match overview.jobs_paused {
        0 => next,
        paused => format!("{paused} paused; {next}"),
    };
    let (value, tone) = (overview.jobs_active.to_string(), Tone::Plain);
    Tile { id: "jobs", value, name: "Active jobs", detail, path: "/jobs", tone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_number_is_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (32_962, "32,962")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn a_count_that_is_cut_short_says_so_and_one_that_failed_hides_nothing_else() {
        let count = |due, succeeded, is_cut_short| DueExecutions { due, succeeded, is_cut_short };
        let (of_a_minute, failure) = (Some("1m ago".to_owned()), "too slow".to_owned());
        let among = "of the last 10,000 that were claimed or enqueued";
        let words = |succeeded: i64| format!("{succeeded} of them have succeeded; {among}");
        for (due, value, detail) in [
            (Ok((count(7, 5, false), None)), "7", words(5)),
            (
                Ok((count(10_000, 9, false), of_a_minute)),
                "10,000",
                format!("{}; counted 1m ago", words(9)),
            ),
            (Ok((count(10_000, 9, true), None)), "10,000+", words(9)),
            (Ok((count(9_000, 9, true), None)), "9,000+", words(9)),
            (Err(failure), "?", "cannot be counted: too slow".to_owned()),
        ] {
            let tile = due_lately(&due);
            assert_eq!((tile.value.as_str(), tile.detail), (value, detail));
        }
    }
}
