//! People who look at every page and list in turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::Connection;
use crate::figures::{Figures, Spread};

/// People at the same time.
const PEOPLE: usize = 50;
/// How often one asks.
const PERIOD: Duration = Duration::from_secs(1);
/// How often each address is requested.
const ROUNDS: usize = 200;
/// The goal for the 99th percentile of each address.
const P99_GOAL_MS: f64 = 150.0;
const PATIENCE: Duration = Duration::from_mins(1);
const LARGEST_PREVIEW: &str = "/failed/bulk?kind=requeue";
/// How often that is requested.
const PREVIEWS: usize = 10;

/// Measures how soon each of these addresses answers. Returns those that miss the goal, or do not answer with 200.
pub(super) async fn measure(
    address: &str,
    addresses: &[String],
    figures: &mut Figures,
) -> Result<Vec<String>> {
    let mut warm = Connection::open(address).await?;
    let (mut answering, mut sizes, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    for path in addresses {
        let answer = warm.get(path).await?;
        if answer.status == 200 {
            answering.push(path.clone());
            sizes.push(answer.body.len());
        } else {
            missed.push(format!("`{path}` answers {}", answer.status));
            eprintln!("{path}: {}", String::from_utf8_lossy(&answer.body));
        }
    }
    let addresses: Arc<[String]> = answering.into();
    let each = ROUNDS * addresses.len() / PEOPLE;
    let begin = Instant::now() + PERIOD;
    let mut people: JoinSet<Result<Vec<(usize, f64)>>> = (0..PEOPLE)
        .map(|person| look(address.to_owned(), Arc::clone(&addresses), (person, each), begin))
        .collect();
    let mut times: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let gather = async {
        while let Some(seen) = people.join_next().await {
            for (path, millis) in seen?? {
                times.entry(path).or_default().push(millis);
            }
        }
        anyhow::Ok(())
    };
    let limit = PERIOD * u32::try_from(each)? + PATIENCE;
    timeout(limit, gather).await.context("some pages were not answered")??;
    let all = Spread::new(times.values().flatten().copied().collect());
    let count = addresses.len();
    figures.add(
        format!("{PEOPLE} people, each with a request in a second, at {count} pages and lists: the first byte"),
        all.render(),
    );
    for (path, times) in times {
        let (spread, kb) = (Spread::new(times), sizes[path] as f64 / 1000.0);
        let (path, p99) = (without_ids(&addresses[path]), spread.at(0.99));
        figures.add(format!("`{path}`, {kb:.0} kB"), spread.render());
        if p99 > P99_GOAL_MS {
            missed.push(format!("`{path}`: p99 {p99:.1} ms"));
        }
    }
    Ok(missed)
}

/// Measures the preview of a bulk of everything that failed, for one person: it counts 100,000 executions, and has no goal. Returns what
/// it answers instead.
pub(super) async fn measure_largest_preview(
    address: &str,
    figures: &mut Figures,
) -> Result<Option<String>> {
    let mut connection = Connection::open(address).await?;
    let mut times = Vec::with_capacity(PREVIEWS);
    for _ in 0..PREVIEWS {
        let begun = Instant::now();
        let answer = connection.get(LARGEST_PREVIEW).await?;
        if answer.status != 200 {
            return Ok(Some(format!("`{LARGEST_PREVIEW}` answers {}", answer.status)));
        }
        times.push(answer.began.duration_since(begun).as_secs_f64() * 1000.0);
    }
    let what = format!("`{LARGEST_PREVIEW}`, which counts 100,000 executions, for one person");
    figures.add(what, Spread::new(times).render());
    Ok(None)
}

/// Looks at one address after the other, each person from another one on.
async fn look(
    address: String,
    addresses: Arc<[String]>,
    (person, each): (usize, usize),
    begin: Instant,
) -> Result<Vec<(usize, f64)>> {
    let mut connection = Connection::open(&address).await?;
    let mut seen = Vec::with_capacity(each);
    let begin = begin + PERIOD * person as u32 / PEOPLE as u32;
    for number in 0..each {
        let due = begin + PERIOD * number as u32;
        sleep_until(due).await;
        let path = (person * addresses.len() / PEOPLE + number) % addresses.len();
        let answer = connection.get(&addresses[path]).await?;
        // An error is no answer, however soon it comes.
        let millis = if answer.status == 200 {
            answer.began.duration_since(due).as_secs_f64() * 1000.0
        } else {
            f64::INFINITY
        };
        seen.push((path, millis));
    }
    Ok(seen)
}

/// An address as it is written down: of any row, and of any second page.
fn without_ids(path: &str) -> String {
    const DELIMITERS: [char; 4] = ['/', '=', '?', '&'];
    let is_id = |part: &str| {
        part.len() >= 16 && part.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-')
    };
    let mut written = String::new();
    for part in path.split_inclusive(DELIMITERS) {
        let value = part.trim_end_matches(DELIMITERS);
        let is_cursor = written.ends_with("cursor=");
        written += match value {
            _ if is_cursor => "NEXT",
            id if is_id(id) => "ID",
            other => other,
        };
        written += &part[value.len()..];
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_without_ids() {
        let id = "0199a3c2-7d41-7e3a-9c55-3f0f6f2b8a11";
        assert_eq!(without_ids(&format!("/failed/{id}/edit")), "/failed/ID/edit");
        assert_eq!(without_ids(&format!("/search?q={id}")), "/search?q=ID");
        assert_eq!(without_ids("/failed?text=declined"), "/failed?text=declined");
        let next = "/api/v1/flows?cursor=WyJmIl0&open=true";
        assert_eq!(without_ids(next), "/api/v1/flows?cursor=NEXT&open=true");
    }
}
