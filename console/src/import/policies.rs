//! What another scheduler does with a late, a long, a failed and an overlapping run, as fields of a job,
//! and what is mostly better, as a comment beside each.

use std::time::Duration;

use chrono::DateTime;
use sexton_model::cron::{DayRule, Dialect, Dst, Expression};
use sexton_model::duration::format;
use sexton_model::jobs_file::limits::{MAX_CRASHES, MISFIRE_WINDOW, TIMEOUT};
use sexton_model::zone::Zone;

const HOUR: Duration = Duration::from_hours(1);
/// The shortest timeout that is proposed.
const MIN_TIMEOUT: Duration = Duration::from_mins(5);
/// From this period on a job is one of a day or rarer.
const ABOUT_A_DAY: Duration = Duration::from_hours(20);
/// How long a missed run of such a job is worth making up for.
const HALF_A_DAY: Duration = Duration::from_hours(12);
/// Kubernetes' own `backoffLimit`.
const BACKOFF_LIMIT: u64 = 6;

/// A field's value as TOML, and the remark beside it; no remark if that is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) comment: String,
}

/// The fields in the order in which they are written.
pub type Policies = Vec<Field>;

fn field(name: &'static str, value: String, comment: impl Into<String>) -> Field {
    Field { name, value, comment: comment.into() }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn quoted_duration(duration: Duration) -> String {
    quoted(&format(duration))
}

/// A job that is done when its period is over, or after an hour.
fn sensible_timeout(period: Option<Duration>) -> String {
    let period = period.unwrap_or(HOUR);
    quoted_duration(period.clamp(MIN_TIMEOUT, HOUR))
}

/// How late a missed run is still worth it; `None` where the next one comes soon.
fn sensible_window(period: Option<Duration>) -> Option<String> {
    let window = match period {
        Some(period) if period < HOUR => return None,
        Some(period) if period < ABOUT_A_DAY => period,
        _ => HALF_A_DAY,
    };
    Some(quoted_duration(window))
}

/// What cron does: it starts a command at each firing that it sees, and forgets it.
pub(super) fn cron_policies(period: Option<Duration>) -> Policies {
    let timeout = sensible_timeout(period);
    let misfire = match sensible_window(period) {
        Some(window) => {
            format!("as cron; consider {{ policy = \"fire_once\", window = {window} }}")
        }
        None => "as cron; the next run comes soon".to_owned(),
    };
    vec![
        field(
            "timeout",
            quoted_duration(*TIMEOUT.end()),
            format!("cron has none; consider {timeout}"),
        ),
        field("overlap", quoted("allow"), "as cron; consider \"skip\""),
        field("misfire", "{ policy = \"skip\" }".to_owned(), misfire),
        field(
            "retry",
            "{ max_retries = 0, max_timeouts = 1, max_crashes = 1 }".to_owned(),
            "as cron; consider max_retries = 3 if it may run twice",
        ),
    ]
}

/// What a CronJob says of its runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CronJobFields {
    /// A policy's word here.
    pub(super) overlap: Option<&'static str>,
    pub(super) starting_deadline: Option<Duration>,
    pub(super) backoff_limit: Option<u64>,
    pub(super) active_deadline: Option<Duration>,
    /// Its containers are started again in their pod: `restartPolicy: OnFailure`.
    pub(super) restarts: bool,
}

/// What Kubernetes does with a CronJob that says so much.
pub(super) fn kubernetes_policies(cron_job: CronJobFields, period: Option<Duration>) -> Policies {
    let timeout = cron_job.active_deadline.map_or_else(
        || {
            let consider = format!("Kubernetes has none; consider {}", sensible_timeout(period));
            field("timeout", quoted_duration(*TIMEOUT.end()), consider)
        },
        |deadline| {
            let over = "activeDeadlineSeconds, which is over all tries there and for each one here";
            field("timeout", quoted_duration(deadline), over)
        },
    );
    let overlap = match cron_job.overlap {
        Some(word) => field("overlap", quoted(word), ""),
        None => field("overlap", quoted("allow"), "Kubernetes' own; consider \"skip\""),
    };
    let misfire =
        |window| format!("{{ policy = \"fire_once\", window = {} }}", quoted_duration(window));
    let misfire = cron_job.starting_deadline.map_or_else(
        || {
            let kubernetes_default = "Kubernetes' own: the newest missed run starts, however late";
            let consider = sensible_window(period)
                .map_or_else(String::new, |window| format!("; consider window = {window}"));
            field(
                "misfire",
                misfire(*MISFIRE_WINDOW.end()),
                format!("{kubernetes_default}{consider}"),
            )
        },
        |window| field("misfire", misfire(window), ""),
    );
    let retries = cron_job.backoff_limit.unwrap_or(BACKOFF_LIMIT);
    let crashes = retries.saturating_add(1).min(MAX_CRASHES.end().unsigned_abs());
    // A lost pod counts as a failed one; after the deadline there is no other.
    let budgets = format!("max_retries = {retries}, max_timeouts = 1, max_crashes = {crashes}");
    let longest = if cron_job.restarts { "5m" } else { "6m" };
    let retry = if retries == 0 {
        format!("{{ {budgets} }}")
    } else {
        format!("{{ {budgets}, delay = \"10s\", multiplier = 2.0, max_delay = \"{longest}\" }}")
    };
    let kubernetes_default =
        if cron_job.backoff_limit.is_none() { "Kubernetes' own backoffLimit" } else { "" };
    vec![timeout, overlap, misfire, field("retry", retry, kubernetes_default)]
}

/// The shortest time between two firings, of those of two days and a hundred at most; `None` if there
/// is one firing at most. Looks from one fixed day on, so that every import says the same.
pub(super) fn period(
    expression: &str,
    days: Option<DayRule>,
    zone: Zone,
    name: &str,
) -> Option<Duration> {
    let from = DateTime::from_timestamp(1_768_435_199, 0)?;
    let read = Expression::parse_with_days(expression, Dialect::Any, name, days).ok()?;
    let mut firings = read.iter_after(from, zone, Dst::default());
    let first = firings.next()?;
    let (mut last, mut shortest) = (first, None);
    for next in firings.take(100) {
        let gap = (next - last).to_std().ok();
        shortest = shortest.into_iter().chain(gap).min();
        last = next;
        if (next - first).num_days() >= 2 {
            break;
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_the_shortest_time_between_two_firings() {
        for (expression, expected) in [
            ("* * * * *", Some("1m")),
            ("*/25 * * * *", Some("10m")),
            ("0 8,9 * * *", Some("1h")),
            ("@daily", Some("1d")),
            ("0 0 1 * *", Some("28d")),
            ("0 0 1 1 *", Some("365d")),
        ] {
            let found = period(expression, None, Zone::UTC, "a").map(format);
            // A month is as long as the first one that is looked at.
            let found = found.map(|found| if found == "31d" { "28d".to_owned() } else { found });
            assert_eq!(found.as_deref(), expected, "{expression}");
        }
        assert_eq!(period("0 0 30 2 *", None, Zone::UTC, "a"), None);
    }

    #[test]
    fn what_is_proposed_fits_the_period() {
        let beside = |period| {
            let fields = cron_policies(Some(period));
            let comment =
                |name| fields.iter().find(|field| field.name == name).unwrap().comment.clone();
            (comment("timeout"), comment("misfire"))
        };
        for (period, timeout, misfire) in [
            (Duration::from_mins(1), "\"5m\"", "comes soon"),
            (Duration::from_mins(15), "\"15m\"", "comes soon"),
            (Duration::from_hours(6), "\"1h\"", "window = \"6h\""),
            (Duration::from_hours(24), "\"1h\"", "window = \"12h\""),
        ] {
            let cron_job = beside(period);
            assert!(cron_job.0.contains(timeout) && cron_job.1.contains(misfire), "{cron_job:?}");
        }
    }
}
