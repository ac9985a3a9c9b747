//! The group that people mean.

use std::collections::HashMap;

use serde::Serialize;
use sexton_model::fingerprint::{FINGERPRINT_DIGITS, Fingerprint};
use sexton_store::failures::{
    Group, GroupFilter, GroupOrder, TREND_HOURS, known_fingerprints, list_groups, trends,
};
use sexton_store::{Now, Store};

use crate::failure::Failure;
use crate::show::line;

/// Fewer digits name too many.
const MIN_DIGITS: usize = 4;
/// How many near ones are told.
const MAX_SUGGESTIONS: i64 = 3;

/// A group, with how many executions of it failed in each of the last hours.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GroupWithTrend {
    /// The group.
    #[serde(flatten)]
    pub group: Group,
    /// The oldest hour first; the last is not over yet.
    pub trend: [u64; TREND_HOURS],
}

/// The groups that a filter means, with their trends.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    filter: &GroupFilter,
    order: GroupOrder,
    limit: i64,
    now: Now,
) -> Result<Vec<GroupWithTrend>, Failure> {
    let groups = list_groups(store, filter, order, limit).await?;
    let fingerprints: Vec<String> = groups.iter().map(|group| group.fingerprint.clone()).collect();
    let mut trends: HashMap<_, _> = trends(store, &fingerprints, now).await?;
    let with_trends = groups.into_iter().map(|group| {
        let trend = trends.remove(&group.fingerprint).unwrap_or_default();
        GroupWithTrend { group, trend }
    });
    Ok(with_trends.collect())
}

/// One group; `None`: it is forgotten, or there was never one.
///
/// # Errors
///
/// Those of the database.
pub async fn find(store: &Store, fingerprint: &str) -> Result<Option<GroupWithTrend>, Failure> {
    let filter = GroupFilter {
        fingerprint: Some(fingerprint.to_owned()),
        empty: true,
        ..GroupFilter::default()
    };
    Ok(list(store, &filter, GroupOrder::Count, 1, None).await?.pop())
}

/// Finds the fingerprint that `text` means: a whole one, or its beginning as far as it is unique.
///
/// # Errors
///
/// [`Failure::Usage`] for what cannot be one or means several, [`Failure::NotFound`] for one that no group
/// has, with those that begin alike.
pub async fn resolve_fingerprint(store: &Store, text: &str) -> Result<Fingerprint, Failure> {
    let digits = text.to_ascii_lowercase();
    let fits = (MIN_DIGITS..=FINGERPRINT_DIGITS).contains(&digits.len());
    if !fits || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::Usage(format!(
            "{:?} is no fingerprint; give the {FINGERPRINT_DIGITS} digits that `sexton failed groups` shows, or at \
             least the first {MIN_DIGITS}",
            line(text, 60)
        )));
    }
    let found = known_fingerprints(store, &digits, MAX_SUGGESTIONS).await?;
    match found.as_slice() {
        [] => Err(not_found(&digits, &similar(store, &digits).await?)),
        [one] => one.parse().map_err(|_| Failure::Failed(format!("{one} is no fingerprint"))),
        several => Err(Failure::Usage(format!(
            "{digits} is the beginning of several fingerprints ({} …); give more digits",
            several.join(", ")
        ))),
    }
}

/// Those that share the longest beginning.
async fn similar(store: &Store, digits: &str) -> Result<Vec<String>, Failure> {
    for length in (2..digits.len()).rev() {
        let found = known_fingerprints(store, &digits[..length], MAX_SUGGESTIONS).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn not_found(digits: &str, similar: &[String]) -> Failure {
    let similar = if similar.is_empty() {
        String::new()
    } else {
        format!(" did you mean {}?", similar.join(" or "))
    };
    Failure::NotFound(format!(
        "there is no group {digits};{similar} `sexton failed groups --all` lists those there are"
    ))
}
