//! Groups of similar failures: found by a part of their fingerprint, listed with their trends, and decided about.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::failures::GroupDecision;
use sexton_model::fingerprint::{FINGERPRINT_DIGITS, Fingerprint};
use sexton_service::fault;
use sexton_store::failures::{
    self, DecideError, Group, GroupChange, GroupFilter, GroupOrder, GroupPosition, GroupStatus,
    MAX_NOTE_CHARS, TREND_HOURS, known_fingerprints, list_groups, trends,
};
use sexton_store::{Now, Store};

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::paging::{Cursor, Page, PagedList};
use crate::text::line;

/// Fewer digits of a fingerprint match too many groups.
pub const MIN_DIGITS: usize = 4;
/// Maximum number of similar fingerprints suggested.
const MAX_SUGGESTIONS: i64 = 3;

/// A group, with the number of its failures in each of the last hours.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupWithTrend {
    /// The group.
    #[serde(flatten)]
    pub group: Group,
    /// The oldest hour first; the last is the current one.
    pub trend: [u64; TREND_HOURS],
}

/// Returns a page of at most `limit` groups that match a filter, with their trends, behind `cursor`. A group whose count
/// or last failure changes between two pages may be on both of them, or on neither.
///
/// # Errors
///
/// [`InvalidRequest`] for a cursor of another list or order, and those of the database.
pub async fn list(
    store: &Store,
    filter: &GroupFilter,
    order: GroupOrder,
    cursor: Option<&str>,
    limit: i64,
    now: Now,
) -> Result<Page<GroupWithTrend>, OperationError> {
    let list = match order {
        GroupOrder::Count => PagedList::LargestGroups,
        GroupOrder::Last => PagedList::LatestGroups,
        GroupOrder::First => PagedList::NewestGroups,
    };
    let after = Cursor::read::<(i64, Option<DateTime<Utc>>, String)>(list, cursor)?;
    let after =
        after.map(|(standing, at, fingerprint)| GroupPosition { standing, at, fingerprint });
    let groups = list_groups(store, filter, order, after.as_ref(), limit + 1).await?;
    let page = Page::from_rows(groups, limit, list, |group| {
        let at = if order == GroupOrder::First { group.first_seen } else { group.last_seen };
        (group.standing, at, group.fingerprint.clone())
    });
    let fingerprints: Vec<String> =
        page.items.iter().map(|group| group.fingerprint.clone()).collect();
    let mut trends: HashMap<_, _> = trends(store, &fingerprints, now).await?;
    Ok(page.map(|group| {
        let trend = trends.remove(&group.fingerprint).unwrap_or_default();
        GroupWithTrend { group, trend }
    }))
}

/// Returns one group; `None`: it never existed, or retention has removed it.
///
/// # Errors
///
/// Those of the database.
pub async fn find(
    store: &Store,
    fingerprint: &str,
) -> Result<Option<GroupWithTrend>, OperationError> {
    let filter = GroupFilter {
        fingerprint: Some(fingerprint.to_owned()),
        empty: true,
        ..GroupFilter::default()
    };
    Ok(list(store, &filter, GroupOrder::Count, None, 1, None).await?.items.pop())
}

/// Resolves `text` to a fingerprint, from a whole one or a unique beginning.
///
/// # Errors
///
/// [`InvalidRequest`] for a text that cannot be one or matches several, [`NotFound::Group`] for one that no group
/// has, with similar ones.
pub async fn resolve_fingerprint(store: &Store, text: &str) -> Result<Fingerprint, OperationError> {
    let digits = text.to_ascii_lowercase();
    let fits = (MIN_DIGITS..=FINGERPRINT_DIGITS).contains(&digits.len());
    if !fits || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(InvalidRequest::Fingerprint(line(text, 60)).into());
    }
    let found = known_fingerprints(store, &digits, MAX_SUGGESTIONS).await?;
    match found.as_slice() {
        [] => {
            let similar = similar(store, &digits).await?;
            Err(NotFound::Group { digits, similar }.into())
        }
        [one] => {
            one.parse().map_err(|_| OperationError::Failed(format!("{one} is no fingerprint")))
        }
        several => {
            let several = several.to_vec();
            Err(InvalidRequest::AmbiguousFingerprint { digits, several }.into())
        }
    }
}

/// Returns the fingerprints with the longest common beginning.
async fn similar(store: &Store, digits: &str) -> Result<Vec<String>, OperationError> {
    for length in (2..digits.len()).rev() {
        let found = known_fingerprints(store, &digits[..length], MAX_SUGGESTIONS).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Returns the group whose fingerprint `text` matches, with its trend.
///
/// # Errors
///
/// As [`resolve_fingerprint`], and [`NotFound::Group`] for a group that was removed meanwhile.
pub async fn show(store: &Store, text: &str) -> Result<GroupWithTrend, OperationError> {
    let digits = resolve_fingerprint(store, text).await?.to_string();
    let missing = || NotFound::Group { digits: digits.clone(), similar: Vec::new() };
    Ok(find(store, &digits).await?.ok_or_else(missing)?)
}

/// An operator's remark about a group.
#[derive(Clone, Copy, Debug)]
pub enum Remark<'a> {
    /// A note for the next reader; an empty text removes the note.
    Note(&'a str),
    /// Muted, resolved or open, and the reason.
    Decide(GroupDecision, Option<&'a str>),
}

/// Writes a note or a decision about the group whose fingerprint `text` matches, and returns the fingerprint and the
/// group's new state. One transaction, with its record in the audit.
///
/// # Errors
///
/// As [`resolve_fingerprint`]; [`InvalidRequest`] for a note that is too long, [`Conflict`] when the group has that
/// state already.
pub async fn remark(
    store: &Store,
    text: &str,
    remark: Remark<'_>,
    actor: &Actor,
) -> Result<(String, GroupStatus), OperationError> {
    let (change, reason) = match remark {
        Remark::Note(note) => {
            check_note(note)?;
            (GroupChange::Note(note), None)
        }
        Remark::Decide(decision, reason) => (GroupChange::Decide(decision), reason),
    };
    let fingerprint = resolve_fingerprint(store, text).await?.to_string();
    let by = actor.because(reason);
    let decided =
        failures::decide(store, &fingerprint, change, by, None).await.map_err(decision_error)?;
    fault::point("console.grouped");
    Ok((fingerprint, decided))
}

/// Checks that a text can be a note.
///
/// # Errors
///
/// [`InvalidRequest`] with the allowed length and characters.
pub fn check_note(note: &str) -> Result<(), InvalidRequest> {
    if note.chars().count() > MAX_NOTE_CHARS || note.contains('\0') {
        return Err(InvalidRequest::Other(format!(
            "a note has at most {MAX_NOTE_CHARS} characters, none of them U+0000"
        )));
    }
    Ok(())
}

fn decision_error(error: DecideError) -> OperationError {
    match error {
        DecideError::Missing(digits) => NotFound::Group { digits, similar: Vec::new() }.into(),
        DecideError::Already { .. } => Conflict::Other(error.to_string()).into(),
        DecideError::Locked(_) => OperationError::Failed(error.to_string()),
        DecideError::Store(error) => error.into(),
    }
}
