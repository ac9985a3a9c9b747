//! Shortens ids for tables, to the shortest beginning that stands for one object.
//!
//! A command accepts such a beginning instead of the id. It is unique among the ids that exist when it is made; a
//! later object may make it ambiguous, and the command then names the candidates.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::Bound::{Excluded, Unbounded};

use sexton_store::neighbours::{self, Neighbours};
use sexton_store::{Store, StoreError};
use uuid::Uuid;

use crate::error::OperationError;

/// The fewest digits of a shortened id.
const MIN_DIGITS: usize = 8;
/// The fewest digits of an unknown message's shortened id.
const MIN_MESSAGE_DIGITS: usize = 12;

/// Ids with their shortened forms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShortIds<Id: Eq + Hash>(HashMap<Id, String>);

impl<Id: Eq + Hash + ToString> ShortIds<Id> {
    /// Returns the shortened form of an id; the whole id if it was not among those to shorten.
    pub fn get(&self, id: &Id) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| id.to_string())
    }
}

/// Shortens ids of executions.
///
/// # Errors
///
/// Those of the database.
pub async fn of_executions(
    store: &Store,
    ids: impl IntoIterator<Item = Uuid>,
) -> Result<ShortIds<Uuid>, OperationError> {
    let ids: Vec<Uuid> = ids.into_iter().collect();
    shorten(neighbours::of_executions(store, &ids).await, MIN_DIGITS)
}

/// Shortens ids of workers.
///
/// # Errors
///
/// Those of the database.
pub async fn of_workers(
    store: &Store,
    ids: impl IntoIterator<Item = Uuid>,
) -> Result<ShortIds<Uuid>, OperationError> {
    let ids: Vec<Uuid> = ids.into_iter().collect();
    shorten(neighbours::of_workers(store, &ids).await, MIN_DIGITS)
}

/// Shortens fingerprints of failure groups.
///
/// # Errors
///
/// Those of the database.
pub async fn of_fingerprints(
    store: &Store,
    fingerprints: impl IntoIterator<Item = String>,
) -> Result<ShortIds<String>, OperationError> {
    let fingerprints: Vec<String> = fingerprints.into_iter().collect();
    shorten(neighbours::of_fingerprints(store, &fingerprints).await, MIN_DIGITS)
}

/// Shortens ids of unknown messages.
///
/// # Errors
///
/// Those of the database.
pub async fn of_unknown_messages(
    store: &Store,
    ids: impl IntoIterator<Item = String>,
) -> Result<ShortIds<String>, OperationError> {
    let ids: Vec<String> = ids.into_iter().collect();
    shorten(neighbours::of_unknown_messages(store, &ids).await, MIN_MESSAGE_DIGITS)
}

fn shorten<Id: Eq + Hash + ToString>(
    found: Result<Vec<Neighbours<Id>>, StoreError>,
    min_digits: usize,
) -> Result<ShortIds<Id>, OperationError> {
    let found = found?;
    let known: BTreeSet<String> = found
        .iter()
        .flat_map(|one| [Some(&one.id), one.before.as_ref(), one.after.as_ref()])
        .flatten()
        .map(|id| digits(&id.to_string()))
        .collect();
    let short = found.into_iter().map(|one| {
        let text = one.id.to_string();
        let short = beginning(&text, unique_digits(&digits(&text), &known).max(min_digits));
        (one.id, short.to_owned())
    });
    Ok(ShortIds(short.collect()))
}

fn digits(id: &str) -> String {
    id.chars().filter(|character| *character != '-').collect()
}

/// Returns how many digits of `id` no other of `known` begins with.
fn unique_digits(id: &str, known: &BTreeSet<String>) -> usize {
    let before = known.range::<str, _>((Unbounded, Excluded(id))).next_back();
    let after = known.range::<str, _>((Excluded(id), Unbounded)).next();
    let shared = |other: &String| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    [before, after].into_iter().flatten().map(shared).max().unwrap_or(0) + 1
}

/// Returns the beginning of an id with so many digits; its dashes count for nothing.
fn beginning(id: &str, digits: usize) -> &str {
    let end = id.char_indices().filter(|(_, character)| *character != '-').nth(digits);
    end.map_or(id, |(at, _)| id[..at].trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(ids: &[&str], before: Option<&str>) -> Vec<String> {
        let uuid = |text: &str| text.parse::<Uuid>().unwrap();
        let found: Vec<_> = ids
            .iter()
            .map(|id| Neighbours { id: uuid(id), before: before.map(uuid), after: None })
            .collect();
        let short = shorten(Ok(found), MIN_DIGITS).unwrap();
        ids.iter().map(|id| short.get(&uuid(id))).collect()
    }

    #[test]
    fn an_id_is_shortened_to_what_neither_neighbour_begins_with() {
        let alone = "0199aabb-cc00-7000-8000-0000000000af";
        assert_eq!(shortened(&[alone], None), ["0199aabb"]);
        let (one, two) =
            ("0199aabb-cc00-7000-8000-0000000000af", "0199aabb-cd00-7000-8000-0000000000af");
        assert_eq!(shortened(&[two, one], None), ["0199aabb-cd", "0199aabb-cc"]);
        // One that is not shown counts as well, and a dash at the end says nothing.
        let other = Some("0199aabb-cbff-7000-8000-0000000000af");
        assert_eq!(shortened(&[one], other), ["0199aabb-cc"]);
        let other = Some("0199aab0-cc00-7000-8000-0000000000af");
        assert_eq!(shortened(&[one], other), ["0199aabb"]);
        // Of the same millisecond.
        let other = Some("0199aabb-cc00-7000-8000-0000000000ae");
        assert_eq!(shortened(&[one], other), [one]);
    }
}
