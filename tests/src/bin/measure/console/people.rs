//! People who look at every page and list in turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
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
const PATIENCE: Duration = Duration::from_mins(1);

/// Measures how soon each of these addresses answers.
pub(super) async fn measure(
    address: &str,
    addresses: &[String],
    figures: &mut Figures,
) -> Result<()> {
    let mut warm = Connection::open(address).await?;
    let mut sizes = Vec::new();
    for path in addresses {
        let answer = warm.get(path).await?;
        ensure!(
            answer.status == 200,
            "{path} answered {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        sizes.push(answer.body.len());
    }
    let addresses: Arc<[String]> = addresses.into();
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
        figures.add(format!("`{}`, {kb:.0} kB", without_ids(&addresses[path])), spread.render());
    }
    Ok(())
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
        ensure!(answer.status == 200, "{} answered {}", addresses[path], answer.status);
        seen.push((path, answer.began.duration_since(due).as_secs_f64() * 1000.0));
    }
    Ok(seen)
}

/// An address as it is written down: of any row.
fn without_ids(path: &str) -> String {
    let is_id = |part: &str| {
        part.len() >= 16 && part.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-')
    };
    let parts = path.split_inclusive(['/', '=']);
    let parts = parts.map(|part| if is_id(part.trim_end_matches('/')) { "ID" } else { part });
    parts.collect::<String>().replace("IDedit", "ID/edit")
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
    }
}
